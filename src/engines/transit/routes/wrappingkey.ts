import { route } from '../../../route.ts'
import { makerOf, type TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'

export const readWrappingKey = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'wrapping_key',
  access: 'token',
  about: 'The RSA-4096 public key that imports are encrypted to; made in the token when first asked for.',
  body: noFields,
  async run({ context, mount, caller }) {
    const { publicKey } = await context.keyImport.wrappingKey(mount.uuid, makerOf(caller))
    // Ends in a newline, as clients compare it.
    return { public_key: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
  },
})
