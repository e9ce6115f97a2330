import { Type } from 'typebox'
import { after } from '../../after.ts'
import { badRequest } from '../../errors.ts'
import { integer } from '../../field.ts'
import { type Data, type MaybePromise, route } from '../../route.ts'
import { decodeInput } from './base64.ts'
import { answer } from './batch.ts'
import type { TransitContext } from './context.ts'
import { type Item, readInputs } from './items.ts'
import type { Ring } from './readring.ts'
import { versionToMake } from './ring.ts'
import { readScheme, schemeFields, schemeReading } from './scheme.ts'
import { tag } from './tagged.ts'
import { withRing } from './withring.ts'

const body = Type.Object({
  ...schemeFields,
  key_version: integer({ about: 'The version to sign with; 0 or absent is the latest.' }),
})
const reading = {
  shape: { ...schemeReading.shape, key_version: 'integer' },
  aliases: schemeReading.aliases,
  shared: [...schemeReading.shared, 'key_version'],
} as const

function signOne(
  context: TransitContext,
  ring: Ring,
  input: Item<typeof reading.shape>,
  urlHash: string | undefined,
): MaybePromise<Data> {
  if (input.input === undefined) throw badRequest('missing input')
  const scheme = readScheme(input, urlHash)
  const message = decodeInput(input.input)
  const { version, material } = versionToMake(ring, input.key_version ?? 0, 'signing')
  return after(context.material(material), (key) =>
    after(context.signer.sign(key, message, scheme), (signature) => ({
      key_version: version,
      signature: tag(version, signature.toString(scheme.marshaling === 'jws' ? 'base64url' : 'base64')),
    })),
  )
}

const signRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Signs.',
    body,
    items: 'batch_input',
    danger: 'none',
    run(call) {
      const inputs = readInputs(call.body, reading)
      return withRing(call, 'signing key not found', (ring) =>
        answer(call, inputs, { partialStatus: 200, failedItem: { key_version: 0 } }, (input) =>
          signOne(call.context, ring, input, call.params.hash_algorithm),
        ),
      )
    },
  })

export const signRoutes = [signRoute('sign/:name'), signRoute('sign/:name/:hash_algorithm')]
