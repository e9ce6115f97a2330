import { Type } from 'typebox'
import { after } from '../../../../after.ts'
import { done } from '../../../../answers.ts'
import { decodeOptional } from '../../../../crypto/base64.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, duration, integer, text } from '../../../../field.ts'
import { algorithmOf, algorithms } from '../../../../keys/algorithms.ts'
import { type Call, type Data, type MaybePromise, route } from '../../../../route.ts'
import { derivedPoint } from '../../ciphers/derived.ts'
import { makerOf, type TransitContext } from '../../context.ts'
import { keyFields, noFields } from '../../input/fields.ts'
import { checkManaged, readReference } from '../../input/managedkey.ts'
import { describeInventory, describeKey, keyAnswer } from '../../ring/describe.ts'
import { managedType } from '../../ring/managedtype.ts'
import type { Ring } from '../../ring/readring.ts'
import { checkAutoRotate } from '../../ring/rules.ts'

const creation = Type.Object({
  type: text({ about: 'The key type; aes256-gcm96 when absent.' }),
  ...keyFields,
  convergent_encryption: boolean({ about: 'Whether equal plaintexts give equal ciphertexts.' }),
  key_size: integer({ about: 'Bytes of an hmac key, 16 to 512; 32 when absent.' }),
  auto_rotate_period: duration({ about: 'Period of automatic rotation; 0 is never, else at least an hour.' }),
  managed_key_name: text({ about: 'Name of a managed key.' }),
  managed_key_id: text({ about: 'UUID of a managed key.' }),
})

type CreateCall = Call<TransitContext, typeof creation>

/** @throws ApiError 400 for a combination that a key cannot have */
function checkCreation(body: CreateCall['body'], type: string): void {
  if (type === managedType) {
    checkManaged(body)
    return
  }
  const algorithm = algorithms.get(type)
  if (algorithm === undefined) throw badRequest(`unknown key type ${type}`)
  if (!algorithm.mac && body.key_size) throw badRequest(`key_size is not valid for algorithm ${type}`)
  checkAutoRotate(body.auto_rotate_period ?? 0)
  if (body.convergent_encryption && !body.derived) {
    throw badRequest('convergent encryption requires derivation to be enabled')
  }
  if (body.derived && !algorithm.abilities.derive) {
    throw badRequest(`key derivation and convergent encryption not supported for keys of type ${type}`)
  }
  if (body.convergent_encryption && !algorithm.aead) {
    throw badRequest(`convergent encryption not supported for keys of type ${type}`)
  }
}

async function create({ context, mount, params, body, caller }: CreateCall): Promise<Data> {
  const { keys, managed } = context
  const { name = '' } = params
  const type = body.type || 'aes256-gcm96'
  checkCreation(body, type)
  const template = {
    name,
    type,
    derived: body.derived ?? false,
    convergent: body.convergent_encryption ?? false,
    exportable: body.exportable ?? false,
    allowPlaintextBackup: body.allow_plaintext_backup ?? false,
    keySize: body.key_size ?? 0,
    autoRotateSeconds: body.auto_rotate_period ?? 0,
    hmacInHsmOnly: body.hmac_in_hsm_only ?? false,
  }
  const reference = readReference(body, type === managedType)
  const createdBy = makerOf(caller)
  const prepareManaged = reference && (() => managed.prepare(mount.uuid, reference, createdBy))
  return describeInventory(context, await keys.create(mount, template, createdBy, prepareManaged))
}

export const createKey = route<TransitContext, typeof creation>({
  method: 'POST',
  path: 'keys/:name',
  access: 'token',
  about: 'Makes a key in the token. An existing key with this name stays unchanged.',
  body: creation,
  answers: keyAnswer,
  run: create,
})

const reading = Type.Object({
  context: text({ about: 'For a derived ed25519 key: the context whose public key to show, in base64.' }),
})

/**
 * The key object. A derivation context adds the public keys derived with it, since a derived signing key has none of
 * its own.
 */
function read({ context, mount, params, body }: Call<TransitContext, typeof reading>): MaybePromise<Data> {
  const { name = '' } = params
  const derivation = decodeOptional('context', body.context)
  return after(describeKey(context, mount, name), (data) => {
    if (derivation === undefined) return data
    return after(context.rings.get(mount, name), (ring) => {
      if (!ring?.key.derived || algorithmOf(ring.key.type).signature === undefined) return data
      return withDerivedPublicKeys(context, ring, data, derivation)
    })
  })
}

async function withDerivedPublicKeys(
  context: TransitContext,
  ring: Ring,
  data: Data,
  derivation: Buffer,
): Promise<Data> {
  const keys: Record<string, unknown> = {}
  for (const [number, entry] of Object.entries(data.keys as Record<string, Data>)) {
    const version = ring.versions.get(Number(number))
    const point = version && (await derivedPoint({ context, ring, version }, derivation))
    keys[number] = { ...entry, public_key: point?.toString('base64') ?? '' }
  }
  return { ...data, keys }
}

export const readKey = route<TransitContext, typeof reading>({
  method: 'GET',
  path: 'keys/:name',
  access: 'token',
  about: 'A key’s settings, and for each version its public part, its residence and its history.',
  body: reading,
  answers: keyAnswer,
  run: read,
})

export const deleteKey = route<TransitContext, typeof noFields>({
  method: 'DELETE',
  path: 'keys/:name',
  access: 'token',
  about: 'Deletes a key and its wrapped material for ever; deletion_allowed must have been set.',
  body: noFields,
  answers: done,
  async run({ context: { changes, keys }, mount, params }) {
    const { name = '' } = params
    const refused = `error deleting policy ${name}`
    await changes.change(mount, name, `${refused}: could not delete key; not found`, async (tx, ring) => {
      if (!ring.key.deletionAllowed) throw badRequest(`${refused}: deletion is not allowed for this key`)
      await keys.remove(tx, ring)
    })
    return undefined
  },
})
