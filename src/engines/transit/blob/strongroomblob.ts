import { createHash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/schema'
import { badRequest } from '../../../errors.ts'
import { type Copy, checkCount, unreadable } from './copy.ts'

/**
 * Backups of Strongroom: one line of JSON in base64. The SHA-256 over the text of `key` detects damage, not forgery:
 * the holder of a backup has the key anyway. Later formats get higher numbers, which this reader refuses.
 */
const format = 1

/** Refuses members that Strongroom does not write, so that every member of an accepted backup was checked. */
const closed = { additionalProperties: false }
const whole = Type.Integer({ minimum: 0 })
const base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' })

const versionSchema = Type.Object(
  {
    version: whole,
    /** Milliseconds since the epoch. */
    created_at: whole,
    convergent_version: whole,
    certificate_chain: Type.Union([Type.String(), Type.Null()]),
    /** secret: its bytes; pair: PKCS#8; public: SPKI. */
    kind: Type.Union([Type.Literal('secret'), Type.Literal('pair'), Type.Literal('public')]),
    key: base64,
    hmac_key: Type.Union([base64, Type.Null()]),
    /** The custody of the version when it was backed up; for information only. */
    history: Type.Object({}),
  },
  closed,
)

const keySchema = Type.Object(
  {
    name: Type.String(),
    type: Type.String(),
    derived: Type.Boolean(),
    convergent_encryption: Type.Boolean(),
    convergent_version: Type.Integer(),
    kdf: Type.String(),
    exportable: Type.Boolean(),
    allow_plaintext_backup: Type.Boolean(),
    key_size: whole,
    auto_rotate_period: whole,
    min_decryption_version: whole,
    min_encryption_version: whole,
    min_available_version: whole,
    latest_version: whole,
    deletion_allowed: Type.Boolean(),
    imported: Type.Boolean(),
    allow_rotation: Type.Boolean(),
    soft_deleted: Type.Boolean(),
    /** Written only when true: programs that do not know it then refuse the backup. */
    hmac_in_hsm_only: Type.Optional(Type.Literal(true)),
    created_at: whole,
    versions: Type.Array(versionSchema),
  },
  closed,
)
const blobSchema = Type.Object(
  { strongroom_backup: Type.Literal(format), sha256: Type.String(), key: keySchema },
  closed,
)

/** Checked first: checking the whole schema of a million versions would block the worker for seconds. */
const countSchema = Type.Object({ key: Type.Object({ versions: Type.Array(Type.Unknown()) }) })

/** The history of each version, by number. */
export type Histories = ReadonlyMap<number, Readonly<Record<string, unknown>>>

/** The backup of a key. */
export function writeStrongroomBlob({ key, versions }: Copy, histories: Histories): string {
  const copied: Static<typeof keySchema> = {
    name: key.name,
    type: key.type,
    derived: key.derived,
    convergent_encryption: key.convergent,
    convergent_version: key.convergentVersion,
    kdf: key.kdf,
    exportable: key.exportable,
    allow_plaintext_backup: key.allowPlaintextBackup,
    key_size: key.keySize,
    auto_rotate_period: key.autoRotateSeconds,
    min_decryption_version: key.minDecryptionVersion,
    min_encryption_version: key.minEncryptionVersion,
    min_available_version: key.minAvailableVersion,
    latest_version: key.latestVersion,
    deletion_allowed: key.deletionAllowed,
    imported: key.imported,
    allow_rotation: key.allowRotation,
    soft_deleted: key.softDeleted,
    ...(key.hmacInHsmOnly ? { hmac_in_hsm_only: true } : {}),
    created_at: key.createdAt,
    versions: versions.map((one) => ({
      version: one.version,
      created_at: one.createdAt,
      convergent_version: one.convergentVersion,
      certificate_chain: one.certificateChain,
      kind: one.key.kind,
      key: one.key.bytes.toString('base64'),
      hmac_key: one.hmac?.toString('base64') ?? null,
      history: histories.get(one.version) ?? {},
    })),
  }
  const bytes = Buffer.from(JSON.stringify({ strongroom_backup: format, sha256: checksum(copied), key: copied }))
  const text = bytes.toString('base64')
  bytes.fill(0)
  return text
}

/** @param parsed the JSON of a backup with the member `strongroom_backup` @throws ApiError 400 */
export function readStrongroomBlob(parsed: Readonly<Record<string, unknown>>): Copy {
  const { strongroom_backup: number } = parsed
  if (typeof number === 'number' && number > format) {
    throw badRequest(`the backup has format ${number}, and this server reads up to ${format}`)
  }
  if (Check(countSchema, parsed)) checkCount(parsed.key.versions.length)
  if (!Check(blobSchema, parsed) || parsed.sha256 !== checksumOf(parsed.key)) throw unreadable()
  const { key } = parsed
  return {
    key: {
      name: key.name,
      type: key.type,
      derived: key.derived,
      convergent: key.convergent_encryption,
      convergentVersion: key.convergent_version,
      kdf: key.kdf,
      exportable: key.exportable,
      allowPlaintextBackup: key.allow_plaintext_backup,
      keySize: key.key_size,
      autoRotateSeconds: key.auto_rotate_period,
      minDecryptionVersion: key.min_decryption_version,
      minEncryptionVersion: key.min_encryption_version,
      minAvailableVersion: key.min_available_version,
      latestVersion: key.latest_version,
      deletionAllowed: key.deletion_allowed,
      imported: key.imported,
      allowRotation: key.allow_rotation,
      softDeleted: key.soft_deleted,
      hmacInHsmOnly: key.hmac_in_hsm_only ?? null,
      createdAt: key.created_at,
    },
    versions: key.versions.map((one) => ({
      version: one.version,
      createdAt: one.created_at,
      convergentVersion: one.convergent_version,
      certificateChain: one.certificate_chain,
      key: { kind: one.kind, bytes: Buffer.from(one.key, 'base64') },
      hmac: one.hmac_key === null ? undefined : Buffer.from(one.hmac_key, 'base64'),
    })),
  }
}

/** @throws ApiError 400 for a history nested too deep for JSON.stringify */
function checksumOf(key: Static<typeof keySchema>): string {
  try {
    return checksum(key)
  } catch {
    throw unreadable()
  }
}

const checksum = (key: Static<typeof keySchema>): string =>
  createHash('sha256').update(JSON.stringify(key)).digest('hex')
