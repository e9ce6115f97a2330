import { Type } from 'typebox'
import { badRequest } from '../../../errors.ts'
import { boolean, duration, text } from '../../../field.ts'
import { algorithms } from '../../../keys/algorithms.ts'
import type { Draft, Specification } from '../../../keys/materials/materials.ts'
import { wrappingBytes } from '../../../keys/transfer/keyimport.ts'
import { type Call, type Data, route } from '../../../route.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { decodeField, decodeOptional } from '../input/base64.ts'
import { keyFields } from '../input/fields.ts'
import { readHashFunction } from '../input/hashfunction.ts'
import { readPublicKey } from '../input/publichalf.ts'
import { newKey } from '../ring/newkey.ts'
import { checkAutoRotate } from '../ring/ring.ts'

const defaultType = 'aes256-gcm96'
/** Several times what any key takes: no more goes to the token, nor through OpenSSL, in one piece. */
const longestCiphertext = 16_384

const nothing = Type.Object({})
/** Where the key comes from. */
export const sourceFields = {
  ciphertext: text({ about: 'Base64 of RSA-OAEP(wrapping key, AES key) ‖ AES-KWP(AES key, the key).' }),
  public_key: text({ about: 'PEM of a public key, where the private one is to stay elsewhere.' }),
  hash_function: text({ about: 'Hash of the RSA-OAEP step: SHA1, SHA224, SHA256 (the default), SHA384 or SHA512.' }),
}
const sourceBody = Type.Object(sourceFields)

const importing = Type.Object({
  ...sourceFields,
  type: text({ about: 'The key type; aes256-gcm96 when absent.' }),
  allow_rotation: boolean({ about: 'Whether versions may be added that are made here.' }),
  ...keyFields,
  context: text({ about: 'Base64 context; required when derived is true.' }),
  convergent_encryption: boolean({ about: 'Refused: convergent keys cannot be imported.' }),
  auto_rotate_period: duration({ about: 'How often the key rotates by itself; needs allow_rotation.' }),
})

type Importing = Call<TransitContext, typeof importing>
/** Where a call brings its key from. */
export type Bringing = Call<TransitContext, typeof sourceBody>

/**
 * How the key that a call brings is made: to be given to Rings.prepare.
 * @param checked what is wrong with the call is said at once, before anything is made
 * @throws ApiError 400
 */
export function bringer({ context, mount, body }: Bringing, type: string): (wanted: Specification) => Promise<Draft> {
  const { ciphertext, public_key: publicKey, hash_function: hashFunction } = body
  if (ciphertext && publicKey) {
    throw badRequest('only one of the following fields, ciphertext and public_key, can be set')
  }
  const hash = readHashFunction(hashFunction)
  if (publicKey) {
    const given = readPublicKey(type, publicKey)
    return (wanted) => context.keyImport.preparePublic(wanted, given)
  }
  if (!ciphertext) throw badRequest('one of the fields ciphertext and public_key is required')
  const sealed = decodeField('ciphertext', ciphertext)
  if (sealed.length <= wrappingBytes) throw badRequest('provided ciphertext is too short')
  if (sealed.length > longestCiphertext)
    throw badRequest(`provided ciphertext is longer than ${longestCiphertext} bytes`)
  return (wanted) => context.keyImport.prepare(wanted, { mount: mount.uuid, hash, ciphertext: sealed })
}

/** @throws ApiError 400 for a combination that no imported key can have */
function checkImport({ type, ...body }: Importing['body'], warn: (text: string) => void): string {
  const name = (type || defaultType).toLowerCase()
  const algorithm = algorithms.get(name)
  if (algorithm === undefined) throw badRequest(`unknown key type: ${type}`)
  if (!type) warn(`type is not given: the key is imported as ${defaultType}`)
  if (body.convergent_encryption) throw badRequest('import cannot be used on keys with convergent encryption enabled')
  if (body.derived && !algorithm.abilities.derive) {
    throw badRequest(`key derivation and convergent encryption not supported for keys of type ${name}`)
  }
  if (body.derived && body.public_key) {
    throw badRequest(
      'unable to import only public key for derived Ed25519 key: its private key is what keys are derived from',
    )
  }
  if (body.derived && !body.context) throw badRequest('context is required when derived is true')
  decodeOptional('context', body.context)
  checkAutoRotate(body.auto_rotate_period ?? 0)
  if (body.auto_rotate_period && !body.allow_rotation) {
    throw badRequest('allow_rotation must be set to true if auto-rotation is enabled')
  }
  return name
}

const taken = () =>
  badRequest(
    'the import path cannot be used with an existing key; use import-version to rotate an existing imported key',
  )

async function importKey(call: Importing): Promise<undefined> {
  const { context, mount, params, body, caller, warn } = call
  const { name = '' } = params
  const type = checkImport(body, warn)
  const bring = bringer(call, type)
  if (await context.rings.get(mount, name)) throw taken()
  const wanted = {
    name,
    type,
    derived: body.derived ?? false,
    exportable: body.exportable ?? false,
    allowPlaintextBackup: body.allow_plaintext_backup ?? false,
    autoRotateSeconds: body.auto_rotate_period ?? 0,
  }
  const row = {
    ...newKey(mount, wanted, context.clock.wall()),
    imported: true,
    allowRotation: body.allow_rotation ?? false,
  }
  const drafts = await context.rings.prepare({ ...row, keySize: 0 }, makerOf(caller), { key: bring })
  const keySize = row.keySize === 0 ? 0 : drafts.key.fields.sizeBytes
  await context.rings.add({ ...row, mount: mount.uuid, keySize }, [{ version: 1, drafts }], () => {
    throw taken()
  })
}

/** PEM with a newline at its end, as clients compare it. */
async function wrappingKey({ context, mount, caller }: Call<TransitContext>): Promise<Data> {
  const { publicKey } = await context.keyImport.wrappingKey(mount.uuid, makerOf(caller))
  return { public_key: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
}

export const importRoutes = [
  route<TransitContext, typeof importing>({
    method: 'POST',
    path: 'keys/:name/import',
    access: 'token',
    about: 'Makes a key of material that comes encrypted to the wrapping key.',
    body: importing,
    danger: 'custody',
    run: importKey,
  }),
  route<TransitContext, typeof nothing>({
    method: 'GET',
    path: 'wrapping_key',
    access: 'token',
    about: 'The RSA-4096 public key that imports are encrypted to; made in the token when first asked for.',
    body: nothing,
    danger: 'none',
    run: wrappingKey,
  }),
]
