import { Type } from 'typebox'
import { data } from '../../../answers.ts'
import { route } from '../../../route.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'

export const readWrappingKey = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'wrapping_key',
  access: 'token',
  about: 'The RSA-4096 public key that encrypts imports; made in the token at the first request.',
  body: noFields,
  answers: data(Type.Object({ public_key: Type.String() })),
  async run({ context, mount, caller }) {
    const { publicKey } = await context.keyImport.wrappingKey(mount.uuid, makerOf(caller))
    // Ends in a newline, because clients compare it whole.
    return { public_key: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
  },
})
