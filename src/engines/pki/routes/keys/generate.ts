import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { defaultsAfter } from '../../authority/defaults.ts'
import type { PkiContext } from '../../context.ts'
import { describeKey, keyAnswer } from '../../keys/describe.ts'
import { type KeySource, keyFields, readSource, sourceKey } from '../../keys/keysource.ts'
import { keyKind } from '../../keys/keytype.ts'
import { privateKeyOf } from '../../keys/privatekey.ts'

const body = Type.Object({ key_name: text({ about: 'Name of the key.' }), ...keyFields })
type GenerateCall = Call<PkiContext, typeof body>

async function generate(call: GenerateCall): Promise<Data> {
  const { context, mount, params, body, warn } = call
  const source = readSource(params.type ?? '', ['internal', 'exported', 'kms'])
  checkKind(source, body)
  const authority = await context.authorities.of(mount)
  const { made } = await sourceKey(call, authority, source, body)
  if (made === undefined) throw new Error('a generated key was not made')
  try {
    const { result: key } = await context.authorities.change(mount, async (tx, before) => {
      const row =
        context.keyRows.find(before, made) ?? (await context.keyRows.insert(tx, before, made, body.key_name ?? ''))
      await context.issuerRows.link(tx, before, row)
      return { settings: defaultsAfter(before, { issuers: [], keys: [row] }, warn), result: row }
    })
    const shown = made.pkcs8 ? { private_key: privateKeyOf(made.pkcs8, made.type).pem } : {}
    return { ...describeKey(key), ...shown }
  } finally {
    made.pkcs8?.fill(0)
    await context.newKeys.discard(made)
  }
}

/** Here, and nowhere else, the reference names the fields in front of the fault. @throws ApiError 400 */
function checkKind(source: KeySource, { key_type: type, key_bits: bits }: GenerateCall['body']): void {
  if (source === 'kms') return
  try {
    keyKind(type || undefined, bits)
  } catch (error) {
    throw badRequest(`Validation for key_type, key_bits failed: ${(error as Error).message}`)
  }
}

export const generateKey = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'keys/generate/:type',
  access: 'token',
  about: 'Makes a key: internal, exported (returned once), or kms (a managed key).',
  body,
  answers: data(Type.Object({ ...keyAnswer, private_key: Type.Optional(Type.String()) })),
  run: generate,
})
