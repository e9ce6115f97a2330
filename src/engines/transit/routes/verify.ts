import { timingSafeEqual } from 'node:crypto'
import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { verify as verifySignature } from '../../../keys/use/verify.ts'
import { type MaybePromise, route } from '../../../route.ts'
import { verifyDerived } from '../ciphers/derived.ts'
import { verifyManaged } from '../ciphers/managed.ts'
import type { TransitContext } from '../context.ts'
import { decodeBase64, decodeInput, decodeOptional } from '../input/base64.ts'
import { answer } from '../input/batch.ts'
import { type Inputs, type Item, readInputs } from '../input/items.ts'
import { hashNameOf, readScheme, schemeFields, schemeReading, warnOfScheme } from '../input/scheme.ts'
import { untag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import type { Ring } from '../ring/readring.ts'
import { versionToUse } from '../ring/versions.ts'
import { withRing } from '../ring/withring.ts'
import { macOf } from './hmac.ts'

const body = Type.Object({
  ...schemeFields,
  signature: text({ about: 'What sign answered.' }),
  hmac: text({ about: 'What hmac answered.' }),
})
const reading = {
  shape: { ...schemeReading.shape, signature: 'text', hmac: 'text' },
  aliases: schemeReading.aliases,
  shared: schemeReading.shared,
} as const
type Input = Item<typeof reading.shape>
type Kind = 'signature' | 'hmac'

/**
 * What is to be verified: the same kind for all inputs. An empty field is one that was not given.
 * @throws ApiError 400 when neither or both were given, or a batch mixes them
 */
function kindOf({ batch, items }: Inputs<Input>): Kind {
  const having = (kind: Kind) => items.filter((item) => item[kind]).length
  const signatures = having('signature')
  const hmacs = having('hmac')
  if (signatures === 0 && hmacs === 0) {
    throw badRequest(
      batch
        ? "no batch_input elements have 'signature' or 'hmac'"
        : "neither a 'signature' nor an 'hmac' were given to verify",
    )
  }
  if (signatures > 0 && hmacs > 0) {
    throw badRequest(
      batch
        ? "elements of batch_input must all provide 'signature' or all provide 'hmac'"
        : "provide one of 'signature' or 'hmac'",
    )
  }
  const kind = signatures > 0 ? 'signature' : 'hmac'
  if (signatures + hmacs < items.length) throw badRequest(`some elements of batch_input are missing '${kind}'`)
  return kind
}

function verifyOne(
  context: TransitContext,
  ring: Ring,
  kind: Kind,
  input: Input,
  urlHash: string | undefined,
  warn: (text: string) => void,
): MaybePromise<boolean> {
  if (input.input === undefined) throw badRequest('missing input')
  const message = decodeInput(input.input)
  return kind === 'signature'
    ? checkSignature(context, ring, input, urlHash, message, warn)
    : checkHmac(context, ring, input, urlHash, message, warn)
}

function checkSignature(
  context: TransitContext,
  ring: Ring,
  input: Input,
  urlHash: string | undefined,
  message: Buffer,
  warn: (text: string) => void,
): MaybePromise<boolean> {
  const scheme = readScheme(input, urlHash)
  const { version, payload } = untag(input.signature ?? '', 'signature')
  const found = versionToUse(ring, version, 'signature')
  const signature = decodeSignature(payload, scheme.marshaling)
  const derivation = decodeOptional('context', input.context)
  if (ring.key.derived) {
    return verifyDerived({ context, ring, version: found, warn }, derivation, message, signature)
  }
  if (ring.key.type === managedType) {
    const chosen = Boolean(input.signature_algorithm)
    return verifyManaged({ context, ring, version: found, warn }, message, signature, scheme, chosen)
  }
  return after(context.material(found.material), (key) => {
    warnOfScheme(context, key, scheme, warn)
    return verifySignature(key, message, signature, scheme)
  })
}

function decodeSignature(payload: string, marshaling: 'asn1' | 'jws'): Buffer {
  const refused = 'invalid base64 signature value'
  if (marshaling === 'asn1') return decodeBase64(payload, () => refused)
  if (!/^[\w-]*$/.test(payload) || payload.length % 4 === 1) throw badRequest(refused)
  return Buffer.from(payload, 'base64url')
}

function checkHmac(
  context: TransitContext,
  ring: Ring,
  input: Input,
  urlHash: string | undefined,
  message: Buffer,
  warn: (text: string) => void,
): MaybePromise<boolean> {
  const { version: number, payload } = untag(input.hmac ?? '', 'HMAC')
  const version = versionToUse(ring, number, 'HMAC')
  const given = decodeBase64(payload, (fault) => `unable to decode verification HMAC as base64: ${fault}`)
  return after(
    macOf(context, version, hashNameOf(input, urlHash), message, warn),
    (mac) => given.length === mac.length && timingSafeEqual(given, mac),
  )
}

const missingKey = { signature: 'signature verification key not found', hmac: 'encryption key not found' }

const verifyRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Whether a signature or an HMAC is the key’s; a wrong one is no error.',
    body,
    items: 'batch_input',
    danger: 'none',
    run(call) {
      const { context, params } = call
      const inputs = readInputs(call.body, reading)
      const kind = kindOf(inputs)
      // As the reference answers: an item whose HMAC does not fit shows no `valid`.
      const shown = (valid: boolean) => (valid || kind === 'signature' || !inputs.batch ? { valid } : {})
      const rules = { partialStatus: 200, failedItem: kind === 'signature' ? { valid: false } : {} } as const
      return withRing(call, missingKey[kind], (ring) =>
        answer(call, inputs, rules, (input, warn) =>
          after(verifyOne(context, ring, kind, input, params.hash_algorithm, warn), shown),
        ),
      )
    },
  })

export const verifyData = verifyRoute('verify/:name')
export const verifyDataWithHash = verifyRoute('verify/:name/:hash_algorithm')
