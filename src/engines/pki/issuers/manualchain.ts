import { badRequest } from '../../../errors.ts'
import { verifyManualChain } from '../../../x509/chain.ts'
import type { Issuer } from '../authority/authority.ts'

/**
 * Checks a manual chain: it begins with the issuer itself, each certificate is verified by the next, and the last one
 * by itself.
 * @throws ApiError 400 naming the broken rule
 */
export function checkManualChain(issuer: Issuer, chain: readonly Issuer[]): void {
  const [first] = chain
  if (first !== undefined && first.row.id !== issuer.row.id) {
    throw badRequest(
      `expected first cert in chain to be a self-reference, but was: ${first.row.name ?? ''}/${first.row.id}`,
    )
  }
  const certificates = chain.map(({ certificate }) => certificate)
  const problem = verifyManualChain(issuer.certificate, certificates)
  if (problem !== undefined) throw badRequest(`manual_chain: ${problem}`)
}
