import { column, defineTable, type Row } from '../../../store/table.ts'
import type { CrlSettings } from '../crl/settings.ts'
import type { AutoTidy } from '../tidy/settings.ts'

/** Where relying parties find an issuer's certificate, lists and OCSP responder (RFC 5280 4.2.2.1 and 4.2.1.13). */
export interface Urls {
  readonly issuingCertificates: readonly string[]
  readonly crlDistributionPoints: readonly string[]
  readonly ocspServers: readonly string[]
  /** Whether `{{issuer_id}}`, `{{cluster_path}}` and `{{cluster_aia_path}}` are expanded when a certificate is made. */
  readonly templating: boolean
}

/**
 * The settings of a mount, and the row that every change of its keys and issuers locks: one each, made with the mount.
 */
export const authoritiesTable = defineTable(
  'pki_authorities',
  {
    /** Uuids, '' while there is none. */
    defaultIssuer: column.text(),
    defaultKey: column.text(),
    defaultFollowsLatest: column.boolean(),
    /** Where new keys live unless the request says otherwise: wrapped | token. */
    residence: column.text(),
    /** Null until they are set. */
    urls: column.json<Urls>().nullable(),
    /** When the default issuer last became another, or an issuer was deleted and chains shrank. */
    changedAt: column.integer(),
    /** Null until it is set: then `defaultCrlSettings`. */
    crl: column.json<CrlSettings>().nullable(),
    /** Automatic tidying; null until it is set. */
    tidy: column.json<AutoTidy>().nullable(),
  },
  { sealed: true },
)
export type SettingsRow = Row<typeof authoritiesTable>

/** The URLs of a mount at a site. */
export const clustersTable = defineTable(
  'pki_clusters',
  { site: column.text(), path: column.text(), aiaPath: column.text() },
  { sealed: true },
)
export type ClusterRow = Row<typeof clustersTable>

/** Where the key of an authority lives. */
export const residences = ['wrapped', 'token'] as const
export type KeyResidence = (typeof residences)[number]

export type KeyType = 'rsa' | 'ec' | 'ed25519'

export const keysTable = defineTable(
  'pki_keys',
  {
    name: column.text().nullable(),
    /** rsa | ec | ed25519 */
    type: column.text(),
    bits: column.integer(),
    createdAt: column.integer(),
    material: column.text(),
    /** Uuid of the managed key behind it, if any. */
    managedKey: column.text().nullable(),
    /** SHA-256 of the SubjectPublicKeyInfo: one key is one row. */
    fingerprint: column.bytes(),
  },
  { sealed: true },
)
export type KeyRow = Row<typeof keysTable>

/** What an issuer may do. Reading is always allowed. */
export const issuerUsages = ['crl-signing', 'issuing-certificates', 'ocsp-signing', 'read-only'] as const
export type IssuerUsage = (typeof issuerUsages)[number]

/** What happens to a leaf that would outlast its issuer. */
export const leafBehaviors = ['err', 'truncate', 'permit'] as const
export type LeafBehavior = (typeof leafBehaviors)[number]

export const issuersTable = defineTable(
  'pki_issuers',
  {
    name: column.text().nullable(),
    /** '' if the private key is not in the mount. */
    keyId: column.text(),
    /** DER. */
    certificate: column.bytes(),
    /** SHA-256 of the certificate: one certificate is one row. */
    fingerprint: column.bytes(),
    leafNotAfterBehavior: column.text(),
    revocationSignatureAlgorithm: column.text(),
    usages: column.json<readonly IssuerUsage[]>(),
    /** Ids, the issuer's own first. */
    manualChain: column.json<readonly string[]>().nullable(),
    /** In place of the mount's URLs. */
    aia: column.json<Urls>().nullable(),
    revokedAt: column.integer().nullable(),
    changedAt: column.integer(),
    createdAt: column.integer(),
  },
  { sealed: true },
)
export type IssuerRow = Row<typeof issuersTable>
