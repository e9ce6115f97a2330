import { Type } from 'typebox'
import { data, done, keyList, strings, titled } from '../../answers.ts'
import { hashes } from '../../crypto/hashes.ts'
import { absent, badRequest } from '../../errors.ts'
import { boolean, commaList, integer, text } from '../../field.ts'
import { redacted } from '../../keys/managed/administration.ts'
import { mechanismOf } from '../../keys/managed/mechanism.ts'
import type { Entry } from '../../keys/managed/registry.ts'
import type { Call, Data, Mount } from '../../route.ts'
import type { Transaction } from '../../store/reader.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'

const managedKey = titled('ManagedKey', {
  UUID: Type.String(),
  name: Type.String(),
  type: Type.String(),
  library: Type.String(),
  token_label: Type.Optional(Type.String()),
  slot: Type.Optional(Type.Integer()),
  key_label: Type.String(),
  key_id: Type.String(),
  mechanism: Type.Integer(),
  pin: Type.String(),
  pin_refused: Type.Boolean(),
  curve: Type.String(),
  key_bits: Type.Integer(),
  usages: strings,
  any_mount: Type.Boolean(),
  allow_generate_key: Type.Boolean(),
  allow_replace_key: Type.Boolean(),
  allow_store_key: Type.Boolean(),
  force_rw_session: Type.Boolean(),
  max_parallel: Type.Integer(),
})

const keyFields = Type.Object({
  library: text({ about: 'Name of a library of the server configuration (pkcs11Libraries).' }),
  key_label: text({ about: 'CKA_LABEL of the key; this or key_id is required.' }),
  key_id: text({ about: 'CKA_ID of the key, in hexadecimal.' }),
  mechanism: text({ about: 'Number of the PKCS#11 mechanism, in hexadecimal with 0x before it.' }),
  pin: text({ about: 'User PIN of the token; tried once, stored wrapped, never shown.' }),
  slot: text({ about: 'Number of the slot; this or token_label is required.' }),
  token_label: text({ about: 'Label of the token.' }),
  curve: text({ about: 'P256, P384 or P521: of keys that are generated for CKM_ECDSA.' }),
  key_bits: integer({
    about: '2048, 3072 or 4096 of RSA keys that are generated; 128 or 256 of an AES key, which must fit.',
  }),
  usages: commaList({ about: 'Uses of the key; those of its mechanism when absent.' }),
  any_mount: boolean({
    about: 'Whether every mount may use the key; else those that list it in allowed_managed_keys.',
  }),
  allow_generate_key: boolean({ about: 'Whether the key is made in the token when it is not there.' }),
  allow_replace_key: boolean({ about: 'Kept and shown; nothing here overwrites a key of a token.' }),
  allow_store_key: boolean({ about: 'Kept and shown; nothing here puts a key into the token.' }),
  force_rw_session: boolean({ about: 'Kept and shown; all sessions are read/write.' }),
  max_parallel: integer({ about: 'Kept and shown; the library’s `threads` setting bounds the calls of all its keys.' }),
})
const testFields = Type.Object({
  use_pss: boolean({ about: 'Whether an RSA key signs by PSS; must fit its mechanism.' }),
  hash_algorithm: text({ about: 'sha1, sha2-224 to sha2-512, sha3-224 to sha3-512; sha2-256 when absent.' }),
})

type Params = Readonly<Record<string, string>>

/** @throws ApiError 400 for the types of managed keys that live in clouds */
function nameOf({ type, name = '' }: Params): string {
  if (type === 'pkcs11') return name
  throw badRequest(`managed keys of type ${type} are not available: there is pkcs11`)
}

async function entryOf({ context, params }: Pick<Call<SystemContext>, 'context' | 'params'>): Promise<Entry> {
  const entry = await context.managedKeys.read(nameOf(params))
  if (entry === undefined) throw absent()
  return entry
}

const describe = ({ row }: Entry): Data => ({
  UUID: row.id,
  name: row.name,
  type: 'pkcs11',
  library: row.library,
  ...(row.tokenLabel === null ? {} : { token_label: row.tokenLabel }),
  ...(row.slot === null ? {} : { slot: row.slot }),
  key_label: row.keyLabel,
  key_id: row.keyId,
  mechanism: row.mechanism,
  pin: redacted,
  pin_refused: row.pinRefused,
  curve: row.curve,
  key_bits: row.keyBits,
  usages: row.usages,
  any_mount: row.anyMount,
  allow_generate_key: row.allowGenerateKey,
  allow_replace_key: row.allowReplaceKey,
  allow_store_key: row.allowStoreKey,
  force_rw_session: row.forceRwSession,
  max_parallel: row.maxParallel,
})

/** How many uses of a managed key a refusal names. */
const namedUses = 3

interface Removal extends Pick<SystemContext, 'engines'> {
  readonly id: string
  readonly name: string
  readonly all: readonly Mount[]
}

/** @throws ApiError 400 while data of an engine uses the key */
async function refuseUsed(tx: Transaction, { id, name, all, engines }: Removal): Promise<void> {
  for (const engine of engines.values()) {
    const own = all.filter(({ type }) => type === engine.type)
    const uses = (await engine.managedKeyUses?.(tx, id, own, namedUses + 1)) ?? []
    if (uses.length === 0) continue
    const more = uses.length > namedUses ? ' and others' : ''
    const named = uses.slice(0, namedUses).join(', ')
    throw badRequest(`managed key "${name}" is used by ${named}${more}: delete or trim what uses it first`)
  }
}

/** @throws ApiError 400 while a mount lists the key, or something uses it */
async function remove({ context, params }: Call<SystemContext, typeof noFields>): Promise<undefined> {
  const name = nameOf(params)
  for (const { path, config } of await context.mounts.list()) {
    const listed = config.allowed_managed_keys
    if (!Array.isArray(listed) || !listed.some((one) => String(one).toLowerCase() === name)) continue
    throw badRequest(
      `managed key "${name}" is listed in allowed_managed_keys of the mount ${path}: take it out there first`,
    )
  }
  const { engines, mounts } = context
  await context.managedKeys.remove(name, async (tx, id) => {
    // A mount made since the list above may use the key already: what the transaction sees decides.
    await refuseUsed(tx, { id, name, all: await mounts.stored(tx), engines })
  })
  return undefined
}

async function test(call: Call<SystemContext, typeof testFields>): Promise<undefined> {
  const entry = await entryOf(call)
  const hash = call.body.hash_algorithm || 'sha2-256'
  if (!hashes.has(hash)) throw badRequest(`invalid hash algorithm "${hash}"`)
  const { padding, name } = mechanismOf(entry.row.mechanism)
  if (call.body.use_pss === true && padding !== 'pss') throw badRequest(`use_pss does not fit the mechanism ${name}`)
  await call.context.managedKeys.test(entry, hash)
  return undefined
}

const common = { access: 'token' } as const

export const listManagedKeys = endpoint({
  ...common,
  method: 'LIST',
  path: 'managed-keys/:type',
  about: 'The names of all managed keys of a type.',
  body: noFields,
  answers: keyList,
  async run({ context, params }) {
    nameOf(params)
    const keys = await context.managedKeys.names()
    if (keys.length === 0) throw absent()
    return { keys }
  },
})

export const writeManagedKey = endpoint({
  ...common,
  method: 'POST',
  path: 'managed-keys/:type/:name',
  about: 'Creates or changes a managed key: one that lies in a PKCS#11 token of somebody else.',
  body: keyFields,
  answers: done,
  async run({ context, params, body, caller }) {
    await context.managedKeys.write(nameOf(params), body, caller?.maker ?? '')
    return undefined
  },
})

export const readManagedKey = endpoint({
  ...common,
  method: 'GET',
  path: 'managed-keys/:type/:name',
  about: 'A managed key, without its PIN.',
  body: noFields,
  answers: data(managedKey),
  run: async (call) => describe(await entryOf(call)),
})

export const removeManagedKey = endpoint({
  ...common,
  method: 'DELETE',
  path: 'managed-keys/:type/:name',
  about: 'Removes a managed key; the key itself stays in its token.',
  body: noFields,
  answers: done,
  run: remove,
})

export const testManagedKey = endpoint({
  ...common,
  method: 'POST',
  path: 'managed-keys/:type/:name/test/sign',
  about: 'Signs random data with the key and verifies it; makes the key where that is allowed.',
  body: testFields,
  answers: done,
  run: test,
})
