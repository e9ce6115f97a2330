import { Type } from 'typebox'
import { absent, badRequest } from '../../../errors.ts'
import { boolean, duration, integer, text } from '../../../field.ts'
import { algorithms } from '../../../keys/algorithms.ts'
import { type Call, type Data, route } from '../../../route.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { decodeOptional } from '../input/base64.ts'
import { keyFields } from '../input/fields.ts'
import { checkManaged, managedType, readReference } from '../input/managedtype.ts'
import { describeKey } from '../ring/describe.ts'
import { checkAutoRotate, configure } from '../ring/ring.ts'
import { readKey } from './readkey.ts'

const nothing = Type.Object({})
const creation = Type.Object({
  type: text({ about: 'The key type; aes256-gcm96 when absent.' }),
  ...keyFields,
  convergent_encryption: boolean({ about: 'Whether equal plaintexts give equal ciphertexts.' }),
  key_size: integer({ about: 'Bytes of an hmac key, 16 to 512; 32 when absent.' }),
  auto_rotate_period: duration({ about: 'How often the key rotates by itself; 0 is never, else at least an hour.' }),
  managed_key_name: text({ about: 'Name of a managed key.' }),
  managed_key_id: text({ about: 'UUID of a managed key.' }),
})

type Creating = Call<TransitContext, typeof creation>

/** @throws ApiError 400 for a combination that no key can have */
function checkCreation(body: Creating['body'], type: string): void {
  if (type === managedType) {
    checkManaged(body)
    return
  }
  const algorithm = algorithms.get(type)
  if (algorithm === undefined) throw badRequest(`unknown key type ${type}`)
  if (algorithm.kind !== 'hmac' && body.key_size) throw badRequest(`key_size is not valid for algorithm ${type}`)
  checkAutoRotate(body.auto_rotate_period ?? 0)
  if (body.convergent_encryption && !body.derived) {
    throw badRequest('convergent encryption requires derivation to be enabled')
  }
  if (body.derived && !algorithm.abilities.derive) {
    throw badRequest(`key derivation and convergent encryption not supported for keys of type ${type}`)
  }
  if (body.convergent_encryption && algorithm.kind !== 'aead') {
    throw badRequest(`convergent encryption not supported for keys of type ${type}`)
  }
}

async function create({ context, mount, params, body, caller }: Creating): Promise<Data> {
  const { rings, managed } = context
  const { name = '' } = params
  const type = body.type || 'aes256-gcm96'
  checkCreation(body, type)
  const wanted = {
    name,
    type,
    derived: body.derived ?? false,
    convergent: body.convergent_encryption ?? false,
    exportable: body.exportable ?? false,
    allowPlaintextBackup: body.allow_plaintext_backup ?? false,
    keySize: body.key_size ?? 0,
    autoRotateSeconds: body.auto_rotate_period ?? 0,
  }
  const reference = readReference(body, type === managedType)
  const maker = makerOf(caller)
  const known = reference && (await rings.get(mount, name))
  const brought = reference && !known ? await managed.prepare(mount.uuid, reference, maker) : undefined
  if (!known) await rings.create(mount, wanted, maker, brought)
  return describeKey(context, mount, name)
}

const reading = Type.Object({
  context: text({ about: 'Of a derived ed25519 key: the context whose public key is shown, in base64.' }),
})

const configuration = Type.Object({
  min_decryption_version: integer({ about: 'The lowest version that decrypts and verifies.' }),
  min_encryption_version: integer({ about: 'The lowest version that encrypts and signs; 0 is the latest.' }),
  deletion_allowed: boolean({ about: 'Whether the key may be deleted.' }),
  exportable: boolean({ about: 'true lets the key be exported; never to be undone.' }),
  allow_plaintext_backup: boolean({ about: 'true lets the key be backed up; never to be undone.' }),
  auto_rotate_period: duration({ about: 'How often the key rotates by itself; 0 is never, absent is as before.' }),
})

type Configuring = Call<TransitContext, typeof configuration>

async function config({ context, mount, params, body, warn }: Configuring): Promise<Data> {
  const { name = '' } = params
  const missing = `no existing key named ${name} could be found`
  let warnings: readonly string[] = []
  await context.rings.configure(mount, name, missing, (key) => {
    if (key.type === managedType) checkManaged(body)
    const wanted = configure(key, body)
    warnings = wanted.warnings
    return wanted.changes
  })
  for (const text of warnings) warn(text)
  return describeKey(context, mount, name)
}

const rotation = Type.Object({
  managed_key_name: text({ about: 'Name of the new managed key, for keys of type managed_key.' }),
  managed_key_id: text({ about: 'UUID of the new managed key, for keys of type managed_key.' }),
})

const listing = Type.Object({
  after: text({ about: 'Names beyond this one only.' }),
  limit: integer({ about: 'At most so many names; absent or 0 is all.' }),
})

const pageNames = 1000

/** Names beyond `after`, a page of the database at a time. */
async function list({ context, mount, body }: Call<TransitContext, typeof listing>): Promise<Data> {
  const limit = body.limit && body.limit > 0 ? body.limit : Number.POSITIVE_INFINITY
  const keys: string[] = []
  for (let cursor = body.after ?? ''; keys.length < limit; cursor = keys.at(-1) ?? '') {
    const page = await context.rings.names(mount, cursor, Math.min(pageNames, limit - keys.length))
    keys.push(...page)
    if (page.length < pageNames) break
  }
  if (keys.length === 0) throw absent()
  return { keys }
}

export const keyRoutes = [
  route<TransitContext, typeof creation>({
    method: 'POST',
    path: 'keys/:name',
    access: 'token',
    about: 'Makes a key in the token. An existing key of the name stays as it is.',
    body: creation,
    danger: 'none',
    run: create,
  }),
  route<TransitContext, typeof reading>({
    method: 'GET',
    path: 'keys/:name',
    access: 'token',
    about: 'What a key is, and for each version its public part, its residence and its history.',
    body: reading,
    danger: 'none',
    run: ({ context, mount, params, body }) =>
      readKey(context, mount, params.name ?? '', decodeOptional('context', body.context)),
  }),
  route<TransitContext, typeof listing>({
    method: 'LIST',
    path: 'keys',
    access: 'token',
    about: 'The names of all keys.',
    body: listing,
    danger: 'none',
    run: list,
  }),
  route<TransitContext, typeof configuration>({
    method: 'POST',
    path: 'keys/:name/config',
    access: 'token',
    about: 'Changes what may be done with a key; all of it or nothing.',
    body: configuration,
    danger: 'custody',
    run: config,
  }),
  route<TransitContext, typeof rotation>({
    method: 'POST',
    path: 'keys/:name/rotate',
    access: 'token',
    about: 'Adds a version, which new data is encrypted and signed with.',
    body: rotation,
    danger: 'none',
    async run({ context, mount, params, body, caller }) {
      const { rings, managed } = context
      const { name = '' } = params
      const maker = makerOf(caller)
      const ring = await rings.get(mount, name)
      if (ring === undefined) throw badRequest('key not found')
      const reference = readReference(body, ring.key.type === managedType)
      const brought = reference && (await managed.prepare(mount.uuid, reference, maker))
      await rings.rotate(mount, name, maker, undefined, brought)
      return describeKey(context, mount, name)
    },
  }),
  route<TransitContext, typeof nothing>({
    method: 'DELETE',
    path: 'keys/:name',
    access: 'token',
    about: 'Deletes a key and its wrapped material for ever; deletion_allowed must have been set.',
    body: nothing,
    danger: 'destructive',
    async run({ context: { rings }, mount, params }) {
      const { name = '' } = params
      const refused = `error deleting policy ${name}`
      await rings.change(mount, name, `${refused}: could not delete key; not found`, async (tx, ring) => {
        if (!ring.key.deletionAllowed) throw badRequest(`${refused}: deletion is not allowed for this key`)
        await rings.remove(tx, ring)
      })
      return undefined
    },
  }),
]
