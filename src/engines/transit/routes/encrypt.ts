import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer, raw, text } from '../../../field.ts'
import { type Call, type MaybePromise, type Outcome, route } from '../../../route.ts'
import { encrypt, readEncryptionInput } from '../ciphers/encrypt.ts'
import { refusalOf, upsertOf } from '../ciphers/upsert.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { runInputs } from '../input/batch.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { readInputs } from '../input/items.ts'
import type { Ring } from '../ring/readring.ts'
import { useRing } from '../ring/withring.ts'

const body = Type.Object({
  plaintext: text({ about: 'What to encrypt, in base64; may be empty.' }),
  associated_data: text({ about: 'Authenticated and not encrypted, in base64.' }),
  context: contextField,
  key_version: encryptingVersionField,
  nonce: nonceField,
  padding_scheme: paddingField,
  batch_input: raw({ about: 'Items of plaintext, associated_data, context, key_version, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 400 when absent.' }),
  type: text({ about: 'Type of the key that is made when there is none; aes256-gcm96 when absent.' }),
  convergent_encryption: boolean({ about: 'Whether the key that is made is convergent.' }),
})

const reading = {
  shape: {
    plaintext: 'string',
    associated_data: 'string',
    context: 'string',
    key_version: 'integer',
    nonce: 'string',
    padding_scheme: 'string',
    reference: 'string',
    type: 'string',
    convergent_encryption: 'boolean',
  },
  shared: ['key_version', 'associated_data', 'padding_scheme', 'type', 'convergent_encryption'],
  required: { field: 'plaintext', missing: 'missing plaintext to encrypt' },
  together: 'context',
} as const

const missing = 'encryption key not found'

type EncryptCall = Call<TransitContext, typeof body>

function encryptInputs(call: EncryptCall): MaybePromise<Outcome> {
  const { context, mount, params, capability, caller } = call
  const { name = '' } = params
  const inputs = readInputs(call.body, reading)
  const { items } = inputs
  const rules = { partialStatus: 400 } as const
  const encryptWith = (ring: Ring) =>
    runInputs(call, inputs, rules, (input, warn) => encrypt({ context, ring, warn }, readEncryptionInput(input)))
  return after(context.rings.get(mount, name), (ring) => {
    if (ring !== undefined || capability !== 'create') return useRing(call, ring, missing, encryptWith)
    return after(context.settings.of(mount), ({ disableUpsert }) => {
      if (disableUpsert) throw badRequest(missing)
      const template = upsertOf(items)
      // A request of which nothing can be encrypted leaves no key behind.
      if (items.some((item) => refusalOf(item) === undefined)) {
        return context.keys
          .create(mount, { ...template, name }, makerOf(caller))
          .then(({ ring: made }) => encryptWith(made))
      }
      return runInputs(call, inputs, rules, (input) => {
        throw refusalOf(input)
      })
    })
  })
}

export const encryptData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'encrypt/:name',
  access: 'token',
  about: 'Encrypts, and makes the key when there is none and the token may create it.',
  body,
  items: 'batch_input',
  exists: ({ rings }, mount, { name = '' }) => after(rings.get(mount, name), (ring) => ring !== undefined),
  run: encryptInputs,
})
