import type { Hash } from '../../../crypto/hashes.ts'
import { readSeconds } from '../../../duration.ts'
import { type CertId, issuerDigests } from '../../../x509/ocsp/certid.ts'
import { type Authority, type Issuer, mayBeUsed } from '../authority/authority.ts'
import { defaultCrlSettings } from '../crl/settings.ts'
import type { Scope } from '../crl/tables.ts'

/** The issuer that answers a request. */
export interface Responding {
  readonly issuer: Issuer
  /** Whether it is the issuer in the request; otherwise the mount lacks that issuer, and its default issuer says so. */
  readonly isAsked: boolean
}

/** A mount as OCSP sees it: made once for each state of its authority. */
export class AskedAuthority {
  readonly authority: Authority
  /** Identifies this state of the authority in caches that outlive it. */
  readonly state: object = {}
  /** Milliseconds for which an answer is valid; 0 means that newer information is available at any time. */
  readonly expiryMilliseconds: number
  readonly #byHash = new Map<Hash, ReadonlyMap<string, Issuer | null>>()

  constructor(authority: Authority) {
    this.authority = authority
    const { ocspExpiry } = authority.settings.crl ?? defaultCrlSettings
    this.expiryMilliseconds = 1000 * readSeconds(ocspExpiry, unreadable)
  }

  /** The revocations that answer requests to the path of this scope; undefined if that path answers no requests. */
  scopeOf(path: Scope): Scope | undefined {
    const { ocspDisable, unifiedCrl, unifiedCrlOnExistingPaths } = this.authority.settings.crl ?? defaultCrlSettings
    if (ocspDisable) return undefined
    if (path === 'unified') return unifiedCrl ? 'unified' : undefined
    return unifiedCrl && unifiedCrlOnExistingPaths ? 'unified' : 'local'
  }

  /** Undefined if no possible issuer may sign OCSP answers and has its key here. */
  responding({ algorithm, issuer: digests }: Pick<CertId, 'algorithm' | 'issuer'>): Responding | undefined {
    const asked = this.#issuersBy(algorithm.hash).get(digests.toString('latin1'))
    if (asked === null) return undefined
    if (asked !== undefined) return { issuer: asked, isAsked: true }
    const { defaultIssuer } = this.authority
    return defaultIssuer !== undefined && this.#answers(defaultIssuer)
      ? { issuer: defaultIssuer, isAsked: false }
      : undefined
  }

  /** Issuers whose key is here, by the digests of name and key; null if no issuer with these may sign OCSP answers. */
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
  throw new Error(`an invalid ocsp_expiry was stored: ${reason}`)
}

const known = new WeakMap<Authority, AskedAuthority>()

/** The mount as OCSP sees it; the same object for the same state of its authority. */
export function askedAuthority(authority: Authority): AskedAuthority {
  const made = known.get(authority) ?? new AskedAuthority(authority)
  known.set(authority, made)
  return made
}
