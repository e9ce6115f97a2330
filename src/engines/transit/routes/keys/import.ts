import { Type } from 'typebox'
import { done } from '../../../../answers.ts'
import { decodeOptional } from '../../../../crypto/base64.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, duration, text } from '../../../../field.ts'
import { algorithms } from '../../../../keys/algorithms.ts'
import { type Call, route } from '../../../../route.ts'
import { makerOf, type TransitContext } from '../../context.ts'
import { keyFields } from '../../input/fields.ts'
import { importer, importSourceFields } from '../../input/importsource.ts'
import { newKey } from '../../ring/newkey.ts'
import { checkAutoRotate } from '../../ring/rules.ts'

const defaultType = 'aes256-gcm96'

const body = Type.Object({
  ...importSourceFields,
  type: text({ about: 'The key type; aes256-gcm96 when absent.' }),
  allow_rotation: boolean({ about: 'Whether the key may be rotated to versions made here.' }),
  ...keyFields,
  context: text({ about: 'Base64 context; required when derived is true.' }),
  convergent_encryption: boolean({ about: 'Refused: convergent keys cannot be imported.' }),
  auto_rotate_period: duration({ about: 'Period of automatic rotation; needs allow_rotation.' }),
})

type ImportCall = Call<TransitContext, typeof body>

/** @returns the key type @throws ApiError 400 for a combination that an imported key cannot have */
function checkImport({ type, ...body }: ImportCall['body'], warn: (text: string) => void): string {
  const name = (type || defaultType).toLowerCase()
  const algorithm = algorithms.get(name)
  if (algorithm === undefined) throw badRequest(`unknown key type: ${type}`)
  if (!type) warn(`type is not given: the key is imported as ${defaultType}`)
  if (body.convergent_encryption) throw badRequest('import cannot be used on keys with convergent encryption enabled')
  if (body.derived && !algorithm.abilities.derive) {
    throw badRequest(`key derivation and convergent encryption not supported for keys of type ${name}`)
  }
  if (body.derived && body.public_key) {
    throw badRequest('unable to import only public key for derived Ed25519 key: keys are derived from its private key')
  }
  const derivation = decodeOptional('context', body.context)
  // Line breaks alone are base64 of nothing.
  if (body.derived && !derivation?.length) throw badRequest('context is required when derived is true')
  checkAutoRotate(body.auto_rotate_period ?? 0)
  if (body.auto_rotate_period && !body.allow_rotation) {
    throw badRequest('allow_rotation must be set to true if auto-rotation is enabled')
  }
  return name
}

const nameTaken = () =>
  badRequest(
    'the import path cannot be used with an existing key; use import-version to rotate an existing imported key',
  )

async function runImport(call: ImportCall): Promise<undefined> {
  const { context, mount, params, body, caller, warn } = call
  const { name = '' } = params
  const type = checkImport(body, warn)
  const template = {
    name,
    type,
    derived: body.derived ?? false,
    exportable: body.exportable ?? false,
    allowPlaintextBackup: body.allow_plaintext_backup ?? false,
    autoRotateSeconds: body.auto_rotate_period ?? 0,
    hmacInHsmOnly: body.hmac_in_hsm_only ?? false,
  }
  const row = {
    ...newKey(mount, template, context.clock.wall()),
    imported: true,
    allowRotation: body.allow_rotation ?? false,
  }
  const checkFree = async (): Promise<void> => {
    if (await context.rings.get(mount, name)) throw nameTaken()
  }
  // A name never read here is probably new: then only the transaction checks for an existing key.
  const guessed = !context.rings.mayExist(mount, name)
  if (!guessed) await checkFree()
  const prepare = async () =>
    context.versions.prepare({ ...row, keySize: 0 }, makerOf(caller), { key: importer(call, type) })
  const draft = await prepare().catch(async (error: unknown) => {
    if (guessed) await checkFree()
    throw error
  })
  const keySize = row.keySize === 0 ? 0 : draft.key.fields.sizeBytes
  await context.keys.add({ ...row, mount: mount.uuid, keySize }, [{ version: 1, draft }], () => {
    throw nameTaken()
  })
}

export const importKey = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/import',
  access: 'token',
  about: 'Imports a key whose material is encrypted to the wrapping key.',
  body,
  answers: done,
  run: runImport,
})
