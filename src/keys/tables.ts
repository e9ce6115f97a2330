import { column, defineTable, type Row } from '../store/table.ts'

/** The cluster's one settings row; its id is the cluster's uuid, its epoch the current one. */
export const clusterTable = defineTable(
  'cluster',
  {
    name: column.text(),
    /** initialising | ready */
    state: column.text(),
    createdAt: column.integer(),
    unsealHash: column.bytes().nullable(),
  },
  { sealed: true },
)
export type ClusterRow = Row<typeof clusterTable>

/** What a KEK wraps. A blob under one can never be taken for a blob under another. */
export type KekPurpose = 'use' | 'export' | 'open' | 'system'
export const kekPurposes: readonly KekPurpose[] = ['use', 'export', 'open', 'system']

/**
 * pending: announced, nothing wrapped by it yet; active: wraps new keys; retiring: only unwraps; destroyed: gone from
 * the token (or about to be), and no blob names it; abandoned: announced and given up, and nothing was ever under it.
 */
export type KekState = 'pending' | 'active' | 'retiring' | 'destroyed' | 'abandoned'

export const keksTable = defineTable(
  'keks',
  {
    purpose: column.text(),
    /** 8 bytes; empty while an announced KEK is not made yet. */
    checkValue: column.bytes(),
    mechanism: column.integer(),
    state: column.text(),
    /** generated | components */
    origin: column.text(),
    createdAt: column.integer(),
    ckaId: column.bytes(),
  },
  { sealed: true },
)
export type KekRow = Row<typeof keksTable>

/** Which worker (by its registration's incarnation) has computed a pending KEK's check value on its own token. */
export const kekProofsTable = defineTable(
  'kek_proofs',
  { kek: column.text(), incarnation: column.text(), provenAt: column.integer() },
  { sealed: false },
)

export const systemKeysTable = defineTable(
  'system_keys',
  {
    /** rows | tokens | audit */
    purpose: column.text(),
    kek: column.text(),
    mechanism: column.integer(),
    blob: column.bytes(),
    checkValue: column.bytes(),
    /** active | retiring */
    state: column.text(),
    createdAt: column.integer(),
  },
  { sealed: true },
)
export type SystemKeyRow = Row<typeof systemKeysTable>

/** public: the private key is not here, only its public half was imported. */
export type Residence = 'wrapped' | 'token' | 'enveloped' | 'public'
/**
 * wrapping: the key that a mount's imports are encrypted to; its owner is the mount. authority: the key of a
 * certificate authority. The part determines a key's usages in the token (usagesOf), and is sealed.
 */
export type Part = 'key' | 'hmac' | 'prk' | 'wrapping' | 'authority'
export type Origin = 'generated' | 'imported' | 'restored'

export const materialsTable = defineTable(
  'materials',
  {
    owner: column.text(),
    version: column.integer(),
    part: column.text(),
    algorithm: column.text(),
    /** True length of a secret; modulus, coordinate or seed length of the rest. */
    sizeBytes: column.integer(),
    residence: column.text(),
    kek: column.text().nullable(),
    mechanism: column.integer().nullable(),
    blob: column.bytes().nullable(),
    ckaId: column.bytes().nullable(),
    /** Of the token that alone holds the key; null for other residences, and for keys from before migration 16. */
    tokenSerial: column.text().nullable(),
    /** SPKI DER. */
    publicKey: column.bytes().nullable(),
    /** SHA-256 of the SPKI. */
    fingerprint: column.bytes().nullable(),
    exportable: column.boolean(),
    local: column.boolean(),
    neverExtractable: column.boolean(),
    alwaysSensitive: column.boolean(),
    origin: column.text(),
    createdAt: column.integer(),
    createdBy: column.text(),
    everPlaintext: column.boolean(),
    /** active; intent and removed: markers of programs before migration 8, which has a table for them */
    state: column.text(),
  },
  { sealed: true },
)
export type MaterialRow = Row<typeof materialsTable>

/** Token objects that are about to be made, and those that are to be destroyed: few, while `materials` grows. */
export const intentsTable = defineTable(
  'intents',
  {
    /** The uuid that the key's row will have, or had. */
    material: column.text(),
    ckaId: column.bytes(),
    algorithm: column.text(),
    /**
     * intent: about to be made; abandoned: never stored, to be destroyed if the token says so too (births.ts); removed:
     * its key was deleted
     */
    state: column.text(),
    createdAt: column.integer(),
    /** Of the token that the object is in; null before migration 16. */
    tokenSerial: column.text().nullable(),
  },
  { sealed: true },
)
export type IntentRow = Row<typeof intentsTable>

/** The columns that are read unverified, to find the rows left by a removed mount. */
export const materialTraces = defineTable(
  'materials',
  { id: column.text(), owner: column.text(), mount: column.text() },
  { sealed: false },
)

/** Encryptions counted per AEAD material, reserved in blocks ahead. */
export const usageTable = defineTable(
  'usage_counters',
  { material: column.text(), used: column.integer() },
  { sealed: false },
)
