import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { data } from '../../../answers.ts'
import { wiping } from '../../../crypto/wiping.ts'
import { badRequest } from '../../../errors.ts'
import { integer, text, wholeBody } from '../../../field.ts'
import { route } from '../../../route.ts'
import { ciphertextAnswer, encrypt } from '../ciphers/encrypt.ts'
import { readParameters } from '../ciphers/parameters.ts'
import type { TransitContext } from '../context.ts'
import { contextField, encryptingVersionField, nonceField, paddingField } from '../input/fields.ts'
import { withRing } from '../ring/withring.ts'

const body = Type.Object({
  bits: integer({ about: 'Length of the data key: 128, 256 (when absent) or 512.' }),
  associated_data: text({ about: 'Authenticated with the data key, in base64.', longest: wholeBody }),
  context: contextField,
  key_version: encryptingVersionField,
  nonce: nonceField,
  padding_scheme: paddingField,
})

/** The type is in the path, so that a policy can allow one and deny the other. */
export const generateDataKey = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'datakey/:type/:name',
  access: 'token',
  about: 'Makes a data key from the token’s randomness. It is returned encrypted; with type plaintext also in clear.',
  body,
  answers: data(Type.Object({ ...ciphertextAnswer, plaintext: Type.Optional(Type.String()) })),
  run(call) {
    const { context, params, body, warn } = call
    const { type } = params
    if (type !== 'plaintext' && type !== 'wrapped') throw badRequest("Invalid path, must be 'plaintext' or 'wrapped'")
    const { bits = 256 } = body
    if (bits !== 128 && bits !== 256 && bits !== 512) throw badRequest('invalid bit length')
    const parameters = readParameters(body)
    return withRing(call, 'encryption key not found', (ring) =>
      after(context.random('seal', bits / 8), (plaintext) =>
        wiping(plaintext, () =>
          after(encrypt({ context, ring, warn }, { ...parameters, plaintext }), (data) =>
            type === 'wrapped' ? data : { ...data, plaintext: plaintext.toString('base64') },
          ),
        ),
      ),
    )
  },
})
