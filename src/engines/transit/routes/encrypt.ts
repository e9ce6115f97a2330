import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer, raw, text, wholeBody } from '../../../field.ts'
import { type Call, type MaybePromise, type Outcome, route } from '../../../route.ts'
import { ciphertextAnswer, encryptInput } from '../ciphers/encrypt.ts'
import { refusalOf, upsertOf } from '../ciphers/upsert.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { resultOrBatch, runInputs } from '../input/batch.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { mostBatchItems, readInputs } from '../input/items.ts'
import type { Ring } from '../ring/readring.ts'
import { useRing } from '../ring/withring.ts'

const body = Type.Object({
  plaintext: text({ about: 'The bytes to encrypt, in base64; may be empty.', longest: wholeBody }),
  associated_data: text({ about: 'Authenticated and not encrypted, in base64.', longest: wholeBody }),
  context: contextField,
  key_version: encryptingVersionField,
  nonce: nonceField,
  padding_scheme: paddingField,
  batch_input: raw({ about: 'Items of plaintext, associated_data, context, key_version, nonce, reference.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 400 when absent.' }),
  type: text({ about: 'Type of the key that is made if it does not exist; aes256-gcm96 when absent.' }),
  convergent_encryption: boolean({ about: 'Whether a key made by this request is convergent.' }),
})

const reading = {
  shape: {
    plaintext: 'string',
    associated_data: 'string',
    context: 'string',
    key_version: 'integer',
    nonce: 'string',
    padding_scheme: 'string',
    reference: 'text',
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
  const inputs = readInputs(call, reading)
  const { items } = inputs
  const rules = { partialStatus: 400 } as const
  const encryptWith = (ring: Ring) =>
    runInputs(call, inputs, rules, (input, warn) => encryptInput({ context, ring, warn }, input))
  return after(context.rings.get(mount, name), (ring) => {
    if (ring !== undefined || capability !== 'create') return useRing(call, ring, missing, encryptWith)
    return after(context.settings.of(mount), ({ disableUpsert }) => {
      if (disableUpsert) throw badRequest(missing)
      const template = upsertOf(items)
      // A request whose items all fail leaves no key behind.
      if (items.some((item) => refusalOf(item) === undefined)) {
        return context.keys
          .create(mount, { ...template, name }, makerOf(caller))
          .then(({ ring: made }) => useRing(call, made, missing, encryptWith))
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
  about: 'Encrypts. A missing key is made if the token may create it.',
  body,
  items: 'batch_input',
  longestList: mostBatchItems,
  exists: ({ rings }, mount, { name = '' }) => after(rings.get(mount, name), (ring) => ring !== undefined),
  answers: resultOrBatch(ciphertextAnswer),
  run: encryptInputs,
})
