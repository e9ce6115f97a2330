import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { decodeInput, decodeOptional } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { integer } from '../../../field.ts'
import { type Data, type MaybePromise, route } from '../../../route.ts'
import { signDerived } from '../ciphers/derived.ts'
import { signManaged } from '../ciphers/managed.ts'
import { type Operation, runOperation } from '../ciphers/operation.ts'
import type { TransitContext } from '../context.ts'
import { resultOrBatch } from '../input/batch.ts'
import { type Item, mostBatchItems, readInputs } from '../input/items.ts'
import { readScheme, schemeFields, schemeReading, warnOfScheme } from '../input/scheme.ts'
import { tag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import { versionToMake } from '../ring/versions.ts'

const signature = {
  key_version: Type.Integer(),
  signature: Type.String(),
  publickey: Type.Optional(Type.String()),
  public_key: Type.Optional(Type.String()),
}

const body = Type.Object({
  ...schemeFields,
  key_version: integer({ about: 'The version to sign with; 0 or absent is the latest.' }),
})
const reading = {
  shape: { ...schemeReading.shape, key_version: 'integerText' },
  aliases: schemeReading.aliases,
  shared: [...schemeReading.shared, 'key_version'],
} as const

type Input = Item<typeof reading.shape>

function sign(operation: Operation, input: Input, urlHash: string | undefined): MaybePromise<Data> {
  const { context, ring, warn } = operation
  if (input.input === undefined) throw badRequest('missing input')
  const scheme = readScheme(input, urlHash, ring.key.type)
  const message = decodeInput(input.input)
  const version = versionToMake(ring, input.key_version ?? 0, 'signing')
  const derivation = decodeOptional('context', input.context)
  const tagged = (signature: Buffer): Data => ({
    key_version: version.version,
    signature: tag(version.version, signature.toString(scheme.marshaling === 'jws' ? 'base64url' : 'base64')),
  })
  if (ring.key.derived) {
    return after(signDerived({ ...operation, version }, derivation, message), ({ signature, point }) => {
      const key = point.toString('base64')
      // The reference's spelling and the common one.
      return { ...tagged(signature), publickey: key, public_key: key }
    })
  }
  if (ring.key.type === managedType) {
    const chosen = Boolean(input.signature_algorithm)
    return after(signManaged({ ...operation, version }, message, scheme, chosen), tagged)
  }
  return after(context.material(version.material), (key) => {
    warnOfScheme(context, key, scheme, warn)
    return after(context.signer.sign(key, message, scheme), tagged)
  })
}

const rules = { missing: 'signing key not found', partialStatus: 200, failedItem: { key_version: 0 } } as const

const signRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Signs.',
    body,
    items: 'batch_input',
    longestList: mostBatchItems,
    answers: resultOrBatch(signature),
    run: (call) =>
      runOperation(call, readInputs(call, reading), rules, (operation, input) =>
        sign(operation, input, call.params.hash_algorithm),
      ),
  })

export const signData = signRoute('sign/:name')
export const signDataWithHash = signRoute('sign/:name/:hash_algorithm')
