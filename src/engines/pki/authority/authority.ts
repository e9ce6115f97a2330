import type { Certificate } from '../../../x509/certificate.ts'
import { keyFingerprintOf } from '../../../x509/publickey.ts'
import type { IssuerRow, IssuerUsage, KeyRow, SettingsRow } from './tables.ts'

/** A CA certificate of the mount. */
export interface Issuer {
  readonly row: IssuerRow
  readonly certificate: Certificate
  /** Ids of the certificates that lead from it upwards, its own first. */
  chain(): readonly string[]
}

/** The URLs of the mount at this site; empty if not configured. */
export interface Cluster {
  readonly path: string
  readonly aiaPath: string
}

export interface AuthorityParts {
  readonly settings: SettingsRow
  readonly cluster: Cluster
  readonly issuers: readonly Issuer[]
  readonly keys: readonly KeyRow[]
}

/** A mount's certificate authority as of one moment. */
export class Authority {
  readonly settings: SettingsRow
  readonly cluster: Cluster
  /** By id, in the order of ids. */
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly keys: ReadonlyMap<string, KeyRow>
  readonly #issuerNames: ReadonlyMap<string, Issuer>
  readonly #keyNames: ReadonlyMap<string, KeyRow>
  #issuersByFingerprint: ReadonlyMap<string, Issuer> | undefined
  #keysByFingerprint: ReadonlyMap<string, KeyRow> | undefined
  #keyless: ReadonlyMap<string, readonly Issuer[]> | undefined

  constructor({ settings, cluster, issuers, keys }: AuthorityParts) {
    this.settings = settings
    this.cluster = cluster
    this.issuers = new Map(issuers.map((issuer) => [issuer.row.id, issuer]))
    this.keys = new Map(keys.map((key) => [key.id, key]))
    this.#issuerNames = new Map(issuers.flatMap((issuer) => (issuer.row.name ? [[issuer.row.name, issuer]] : [])))
    this.#keyNames = new Map(keys.flatMap((key) => (key.name ? [[key.name, key]] : [])))
  }

  get defaultIssuer(): Issuer | undefined {
    return this.issuers.get(this.settings.defaultIssuer)
  }

  get defaultKey(): KeyRow | undefined {
    return this.keys.get(this.settings.defaultKey)
  }

  /** @param reference `default`, an id or a name */
  findIssuer(reference: string): Issuer | undefined {
    if (isDefault(reference)) return this.defaultIssuer
    return this.issuers.get(reference) ?? this.#issuerNames.get(reference)
  }

  /** @param reference `default`, an id or a name */
  findKey(reference: string): KeyRow | undefined {
    if (isDefault(reference)) return this.defaultKey
    return this.keys.get(reference) ?? this.#keyNames.get(reference)
  }

  issuerNamed(name: string): Issuer | undefined {
    return this.#issuerNames.get(name)
  }

  keyNamed(name: string): KeyRow | undefined {
    return this.#keyNames.get(name)
  }

  /** @param fingerprint SHA-256 of the certificate */
  issuerWith(fingerprint: Buffer): Issuer | undefined {
    this.#issuersByFingerprint ??= new Map([...this.issuers.values()].map((one) => [hex(one.row.fingerprint), one]))
    return this.#issuersByFingerprint.get(hex(fingerprint))
  }

  /** @param fingerprint SHA-256 of the public key */
  keyWith(fingerprint: Buffer): KeyRow | undefined {
    this.#keysByFingerprint ??= new Map([...this.keys.values()].map((key) => [hex(key.fingerprint), key]))
    return this.#keysByFingerprint.get(hex(fingerprint))
  }

  /** Issuers whose private key is not in the mount. @param fingerprint SHA-256 of their public key */
  keylessWith(fingerprint: Buffer): readonly Issuer[] {
    this.#keyless ??= Map.groupBy(
      [...this.issuers.values()].filter(({ row }) => row.keyId === ''),
      ({ certificate }) => hex(keyFingerprintOf(certificate.spki)),
    )
    return this.#keyless.get(hex(fingerprint)) ?? []
  }

  /** The private key of an issuer, if it is in the mount. */
  keyOf({ row }: Issuer): KeyRow | undefined {
    return this.keys.get(row.keyId)
  }

  /** The certificates of an issuer's chain, its own first. */
  chainOf({ chain }: Issuer): readonly Issuer[] {
    return chain().flatMap((id) => this.issuers.get(id) ?? [])
  }
}

const hex = (fingerprint: Buffer): string => fingerprint.toString('hex')

/** A reference in a path, with `default` in one spelling. */
export const foldDefault = (reference: string): string => (isDefault(reference) ? 'default' : reference)

/** Whether a reference names the mount's default. */
export const isDefault = (reference: string): boolean => reference.trim().toLowerCase() === 'default'

export const mayBeUsed = ({ row }: Issuer, usage: IssuerUsage): boolean => row.usages.includes(usage)
