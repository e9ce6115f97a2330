import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import type { TidyDeps } from './deps.ts'
import { lastEnd, type Part, type Place, wholly } from './part.ts'

/** Removes issuers that ended long enough ago, but never the default one; keys stay. */
export function expiredIssuersPart(deps: TidyDeps): Part {
  const { authorities, issuerRows, clock, log, lists } = deps
  return wholly(async ({ mount: uuid, run, claim }: Place) => {
    const end = lastEnd(clock.wall(), run.order.issuerSafetyBuffer)
    if (expired(await authorities.of({ uuid }), end).length === 0) return {}
    const { result: removed } = await authorities.change({ uuid }, async (tx, before) => {
      await tx.fence(claim.job, claim.fence)
      const issuers = expired(before, end)
      for (const { row } of issuers) await issuerRows.remove(tx, row)
      return { settings: { changedAt: clock.wall() }, result: issuers }
    })
    for (const { row } of removed) log.info({ mount: uuid, issuer: row.id }, 'tidy removed an expired issuer')
    await lists.afterDeletion({ uuid }, new Set(removed.map(({ certificate }) => crlIssuerOf(certificate))))
    return {}
  })
}

const expired = (authority: Authority, end: number): Issuer[] =>
  [...authority.issuers.values()].filter(
    (issuer) => issuer !== authority.defaultIssuer && issuer.certificate.notAfter <= end,
  )
