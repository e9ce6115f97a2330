import { column, defineTable, type Row } from '../../store/table.ts'
import type { ManagedUsage } from './mechanism.ts'

/** One row per managed key: where a key in somebody else's token lies, and its allowed uses. */
export const managedKeysTable = defineTable(
  'managed_keys',
  {
    name: column.text(),
    /** Name of a library of the configuration. */
    library: column.text(),
    tokenLabel: column.text().nullable(),
    slot: column.integer().nullable(),
    /** CKA_LABEL; '' when only the id counts. */
    keyLabel: column.text(),
    /** CKA_ID in hexadecimal; '' when only the label counts. */
    keyId: column.text(),
    mechanism: column.integer(),
    curve: column.text(),
    keyBits: column.integer(),
    usages: column.json<readonly ManagedUsage[]>(),
    anyMount: column.boolean(),
    allowGenerateKey: column.boolean(),
    allowReplaceKey: column.boolean(),
    allowStoreKey: column.boolean(),
    forceRwSession: column.boolean(),
    maxParallel: column.integer(),
    /** The material that holds the PIN, under the open KEK. */
    pin: column.text(),
    /** The token has refused this PIN: it is not tried again. */
    pinRefused: column.boolean(),
    createdAt: column.integer(),
    updatedAt: column.integer(),
  },
  { sealed: true },
)
/** Names for listings: unverified, from an index alone. A key is verified when it is used. */
export const managedNames = defineTable('managed_keys', { name: column.text() }, { sealed: false })

export type ManagedRow = Row<typeof managedKeysTable>
