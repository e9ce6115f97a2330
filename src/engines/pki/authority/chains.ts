import { LRUCache } from 'lru-cache'
import type { Certificate } from '../../../x509/certificate.ts'
import { buildChains, isSignedBy } from '../../../x509/chain.ts'
import type { Issuer } from './authority.ts'
import type { IssuerRow } from './tables.ts'

const verificationsHeld = 100_000

/** An issuer as it was read from its row. */
interface ReadIssuer {
  readonly row: IssuerRow
  readonly certificate: Certificate
}

/** Chains of issuers. Of two certificates it is looked at once whether one has signed the other. */
export class Chains {
  readonly #verified = new LRUCache<string, boolean>({ max: verificationsHeld })

  /** Gives each issuer its chain. @param issuers all of a mount */
  link(issuers: readonly ReadIssuer[]): readonly Issuer[] {
    const authorities = issuers.map(({ row: { id, manualChain }, certificate }) => ({
      id,
      certificate,
      ...(manualChain === null ? {} : { manualChain }),
    }))
    const chains = buildChains(authorities, (child, parent) => this.#signed(child, parent))
    return issuers.map((issuer) => ({ ...issuer, chain: chains.get(issuer.row.id) ?? [issuer.row.id] }))
  }

  #signed(child: Certificate, parent: Certificate): boolean {
    const pair = child.fingerprint().toString('latin1') + parent.fingerprint().toString('latin1')
    const known = this.#verified.get(pair)
    if (known !== undefined) return known
    const verified = isSignedBy(child, parent)
    this.#verified.set(pair, verified)
    return verified
  }
}
