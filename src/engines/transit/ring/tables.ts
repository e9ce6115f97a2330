import { column, defineTable, type Row } from '../../../store/table.ts'

/** The time of a backup or restore, and the latest version then. */
export interface CopyInfo {
  readonly time: string
  readonly version: number
}

/** One row per named key. It is the head of its versions: all of them from the floor to `latestVersion` must exist. */
export const keysTable = defineTable(
  'transit_keys',
  {
    name: column.text(),
    type: column.text(),
    derived: column.boolean(),
    convergent: column.boolean(),
    convergentVersion: column.integer(),
    /** '' while the key is not derived. */
    kdf: column.text(),
    exportable: column.boolean(),
    allowPlaintextBackup: column.boolean(),
    /** Bytes; 0 if the type fixes the size. */
    keySize: column.integer(),
    autoRotateSeconds: column.integer(),
    minDecryptionVersion: column.integer(),
    minEncryptionVersion: column.integer(),
    minAvailableVersion: column.integer(),
    latestVersion: column.integer(),
    deletionAllowed: column.boolean(),
    imported: column.boolean(),
    allowRotation: column.boolean(),
    softDeleted: column.boolean(),
    /** Whether HMACs that need the secret in memory are refused; null, as in older rows, means false. */
    hmacInHsmOnly: column.boolean().nullable(),
    backupInfo: column.json<CopyInfo>().nullable(),
    restoreInfo: column.json<CopyInfo>().nullable(),
    createdAt: column.integer(),
    /** The time of the next automatic rotation, in milliseconds; the job searches by it. */
    rotateAt: column.integer().nullable(),
  },
  { sealed: true },
)
export type KeyRow = Row<typeof keysTable>

/** Names for listings: unverified, from an index alone. A key is verified when it is used. */
export const keyNames = defineTable('transit_keys', { mount: column.text(), name: column.text() }, { sealed: false })

/** The columns that find keys due for rotation; unverified, so nothing is decided by them. */
export const dueKeys = defineTable(
  'transit_keys',
  { id: column.text(), mount: column.text(), name: column.text(), rotateAt: column.loose().nullable() },
  { sealed: false },
)

/** The settings of a mount: one row each, made with the mount. */
export const settingsTable = defineTable(
  'transit_config',
  { disableUpsert: column.boolean(), cacheSize: column.integer() },
  { sealed: true },
)
export type SettingsRow = Row<typeof settingsTable>

/** One row per key version; the material itself is in the table of keys/. */
export const versionsTable = defineTable(
  'transit_versions',
  {
    keyId: column.text(),
    version: column.integer(),
    material: column.text(),
    /** The version's own HMAC secret; null for type hmac, whose key is the secret. */
    hmacMaterial: column.text().nullable(),
    prkMaterial: column.text().nullable(),
    convergentVersion: column.integer(),
    createdAt: column.integer(),
    managedKey: column.text().nullable(),
    certificateChain: column.text().nullable(),
  },
  { sealed: true },
)
export type VersionRow = Row<typeof versionsTable>
