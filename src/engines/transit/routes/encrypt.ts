import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer, raw, text } from '../../../field.ts'
import { route } from '../../../route.ts'
import { encryptPlain, readPlain } from '../ciphers/plain.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { answer } from '../input/batch.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { readInputs } from '../input/items.ts'
import type { Ring } from '../ring/readring.ts'
import { faultOf, upsertOf } from '../ring/upsert.ts'
import { attempt } from '../ring/withring.ts'

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

export const encryptData = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'encrypt/:name',
  access: 'token',
  about: 'Encrypts, and makes the key when there is none and the token may create it.',
  body,
  items: 'batch_input',
  danger: 'none',
  exists: ({ rings }, mount, { name = '' }) => after(rings.get(mount, name), (ring) => ring !== undefined),
  run(call) {
    const { context, mount, params, capability, caller } = call
    const name = params.name ?? ''
    const inputs = readInputs(call.body, reading)
    const { items } = inputs
    const rules = { partialStatus: 400 } as const
    const encryptWith = (ring: Ring) =>
      answer(call, inputs, rules, (input, warn) => encryptPlain(context, ring, readPlain(input), warn))
    return after(context.rings.get(mount, name), (ring) => {
      if (ring !== undefined || capability !== 'create') {
        return attempt(call, ring, missing, encryptWith)
      }
      return after(context.settings.of(mount), ({ disableUpsert }) => {
        if (disableUpsert) throw badRequest(missing)
        const wanted = upsertOf(items)
        // A request of which nothing can be encrypted leaves no key behind.
        if (items.some((item) => faultOf(item) === undefined)) {
          return context.keys.create(mount, { ...wanted, name }, makerOf(caller)).then(encryptWith)
        }
        return answer(call, inputs, rules, (input) => {
          throw faultOf(input)
        })
      })
    })
  },
})
