import type { Hash } from '../../../crypto/hashes.ts'
import { readSeconds } from '../../../duration.ts'
import { type CertId, issuerDigests } from '../../../x509/ocsp/certid.ts'
import { type Authority, type Issuer, mayBeUsed } from '../authority/authority.ts'
import { defaultCrlSettings } from '../crl/settings.ts'
import type { Scope } from '../crl/tables.ts'

/** Who answers a request. */
export interface Responding {
  readonly issuer: Issuer
  /** Whether it is the issuer that was asked about; else no issuer here is, and the default one says so. */
  readonly isAsked: boolean
}

/** A mount as requests see it: made once for each state of its authority. */
export class AskedAuthority {
  readonly authority: Authority
  /** Stands for this state of the authority in what outlives it. */
  readonly state: object = {}
  /** Milliseconds that an answer is valid; 0 says that newer information is available at any time. */
  readonly expiryMilliseconds: number
  readonly #byHash = new Map<Hash, ReadonlyMap<string, Issuer | null>>()

  constructor(authority: Authority) {
    this.authority = authority
    const { ocspExpiry } = authority.settings.crl ?? defaultCrlSettings
    this.expiryMilliseconds = 1000 * readSeconds(ocspExpiry, unreadable)
  }

  /** Whose revocations a request to the path of this scope is answered from; undefined where that path answers nobody. */
  scopeOf(path: Scope): Scope | undefined {
    const { ocspDisable, unifiedCrl, unifiedCrlOnExistingPaths } = this.authority.settings.crl ?? defaultCrlSettings
    if (ocspDisable) return undefined
    if (path === 'unified') return unifiedCrl ? 'unified' : undefined
    return unifiedCrl && unifiedCrlOnExistingPaths ? 'unified' : 'local'
  }

  /** Undefined where those who could answer may not sign OCSP, or have no key here. */
  responding({ algorithm, issuer: digests }: Pick<CertId, 'algorithm' | 'issuer'>): Responding | undefined {
    const asked = this.#issuersBy(algorithm.hash).get(digests.toString('latin1'))
    if (asked === null) return undefined
    if (asked !== undefined) return { issuer: asked, isAsked: true }
    const { defaultIssuer } = this.authority
    return defaultIssuer !== undefined && this.#answers(defaultIssuer)
      ? { issuer: defaultIssuer, isAsked: false }
      : undefined
  }

  /** Issuers whose key is here, by the digests of name and key; null where none of those twins may sign OCSP. */
  #issuersBy(hash: Hash): ReadonlyMap<string, Issuer | null> {
    const known = this.#byHash.get(hash)
    if (known !== undefined) return known
    const made = new Map<string, Issuer | null>()
    for (const issuer of this.authority.issuers.values()) {
      if (this.authority.keyOf(issuer) === undefined) continue
      const digests = issuerDigests(hash, issuer.certificate).toString('latin1')
      made.set(digests, made.get(digests) ?? (this.#answers(issuer) ? issuer : null))
    }
    this.#byHash.set(hash, made)
    return made
  }

  #answers(issuer: Issuer): boolean {
    return mayBeUsed(issuer, 'ocsp-signing') && this.authority.keyOf(issuer) !== undefined
  }
}

const unreadable = (reason: string): never => {
  throw new Error(`ocsp_expiry was stored without being read: ${reason}`)
}

const known = new WeakMap<Authority, AskedAuthority>()

export function askedAuthority(authority: Authority): AskedAuthority {
  const made = known.get(authority) ?? new AskedAuthority(authority)
  known.set(authority, made)
  return made
}
