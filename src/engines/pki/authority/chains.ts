import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { once } from '../../../once.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { chainFinder, isSignedBy, searchParents } from '../../../x509/chain.ts'
import type { Issuer } from './authority.ts'
import type { IssuerRow } from './tables.ts'

const verificationsHeld = 100_000
/** Per turn of the event loop: a few milliseconds. */
const verificationsAtOnce = 32

/** An issuer as it was read from its row. */
interface ReadIssuer {
  readonly row: IssuerRow
  readonly certificate: Certificate
}

/** Chains of issuers. Whether one certificate has signed another is verified once and remembered. */
export class Chains {
  readonly #verified = new LRUCache<string, boolean>({ max: verificationsHeld })
  #verifications = 0

  /** Gives each issuer its chain. @param issuers all of a mount */
  async link(issuers: readonly ReadIssuer[]): Promise<readonly Issuer[]> {
    const authorities = issuers.map(({ row: { id, manualChain }, certificate }) => ({
      id,
      certificate,
      ...(manualChain === null ? {} : { manualChain }),
    }))
    const search = searchParents(authorities, (child, parent) => this.#signed(child, parent))
    let paused = this.#verifications
    let step = search.next()
    for (; !step.done; step = search.next()) {
      if (this.#verifications - paused < verificationsAtOnce) continue
      await nextTurn()
      paused = this.#verifications
    }
    const find = chainFinder(authorities, step.value)
    return issuers.map((issuer) => ({ ...issuer, chain: once(() => find(issuer.row.id)) }))
  }

  #signed(child: Certificate, parent: Certificate): boolean {
    const pair = child.fingerprint().toString('latin1') + parent.fingerprint().toString('latin1')
    const known = this.#verified.get(pair)
    if (known !== undefined) return known
    this.#verifications++
    const verified = isSignedBy(child, parent)
    this.#verified.set(pair, verified)
    return verified
  }
}
