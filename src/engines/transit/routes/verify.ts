import { timingSafeEqual } from 'node:crypto'
import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { decodeBase64, decodeInput, decodeOptional } from '../../../crypto/base64.ts'
import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { verify } from '../../../keys/use/verify.ts'
import { type Call, type MaybePromise, type Outcome, route } from '../../../route.ts'
import { verifyDerived } from '../ciphers/derived.ts'
import { hmac } from '../ciphers/hmac.ts'
import { verifyManaged } from '../ciphers/managed.ts'
import { type Operation, runOperation } from '../ciphers/operation.ts'
import type { TransitContext } from '../context.ts'
import { resultOrBatch } from '../input/batch.ts'
import { type Inputs, type Item, mostBatchItems, readInputs } from '../input/items.ts'
import { hashNameOf, readScheme, schemeFields, schemeReading, warnOfScheme } from '../input/scheme.ts'
import { untag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import { versionToUse } from '../ring/versions.ts'

const body = Type.Object({
  ...schemeFields,
  signature: text({ about: 'The signature from sign.' }),
  hmac: text({ about: 'The HMAC from hmac.' }),
})
const reading = {
  shape: { ...schemeReading.shape, signature: 'text', hmac: 'text' },
  aliases: schemeReading.aliases,
  shared: schemeReading.shared,
} as const
type Input = Item<typeof reading.shape>
type Kind = 'signature' | 'hmac'

/**
 * The field that all inputs give for verification. An empty one counts as absent, but the only one of an item in a
 * batch is the fault of that item.
 * @throws ApiError 400 when they give neither or both, or a batch mixes them
 */
function kindOf({ batch, items }: Inputs<Input>): Kind {
  const having = (kind: Kind, other: Kind) =>
    items.filter((item) => item[kind] || (batch && item[kind] === '' && item[other] === undefined)).length
  const signatures = having('signature', 'hmac')
  const hmacs = having('hmac', 'signature')
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

/** A signature or HMAC over a message, to be verified. */
interface Claim {
  readonly message: Buffer
  readonly input: Input
  readonly urlHash: string | undefined
}

function verifySignature(operation: Operation, { message, input, urlHash }: Claim): MaybePromise<boolean> {
  const { context, ring, warn } = operation
  const scheme = readScheme(input, urlHash, ring.key.type)
  const tagged = untag(input.signature ?? '', 'signature')
  const version = versionToUse(ring, tagged.version, 'signature')
  const signature = decodeSignature(tagged.payload, scheme.marshaling)
  const derivation = decodeOptional('context', input.context)
  if (ring.key.derived) return verifyDerived({ ...operation, version }, derivation, message, signature)
  if (ring.key.type === managedType) {
    const chosen = Boolean(input.signature_algorithm)
    return verifyManaged({ ...operation, version }, message, signature, scheme, chosen)
  }
  return after(context.material(version.material), (key) => {
    warnOfScheme(context, key, scheme, warn)
    return verify(key, message, signature, scheme)
  })
}

function decodeSignature(payload: string, marshaling: 'asn1' | 'jws'): Buffer {
  const refused = 'invalid base64 signature value'
  if (marshaling === 'asn1') return decodeBase64(payload, () => refused)
  if (!/^[\w-]*$/.test(payload) || payload.length % 4 === 1) throw badRequest(refused)
  return Buffer.from(payload, 'base64url')
}

function verifyHmac(operation: Operation, { message, input, urlHash }: Claim): MaybePromise<boolean> {
  const tagged = untag(input.hmac ?? '', 'HMAC')
  const version = versionToUse(operation.ring, tagged.version, 'HMAC')
  const claimed = decodeBase64(tagged.payload, (fault) => `unable to decode verification HMAC as base64: ${fault}`)
  return after(
    hmac({ ...operation, version }, hashNameOf(input, urlHash), message),
    (mac) => claimed.length === mac.length && timingSafeEqual(claimed, mac),
  )
}

const kinds = {
  signature: { verify: verifySignature, missing: 'signature verification key not found', failedItem: { valid: false } },
  hmac: { verify: verifyHmac, missing: 'encryption key not found', failedItem: {} },
} as const

function verifyInputs(call: Call<TransitContext, typeof body>): MaybePromise<Outcome> {
  const urlHash = call.params.hash_algorithm
  const inputs = readInputs(call, reading)
  const kind = kindOf(inputs)
  const { missing, failedItem, verify: verifyInput } = kinds[kind]
  // As in the reference, an item whose HMAC does not match has no `valid`.
  const shown = (valid: boolean) => (valid || kind === 'signature' || !inputs.batch ? { valid } : {})
  return runOperation(call, inputs, { missing, partialStatus: 200, failedItem }, (operation, input) => {
    if (input.input === undefined) throw badRequest('missing input')
    return after(verifyInput(operation, { message: decodeInput(input.input), input, urlHash }), shown)
  })
}

const verifyRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Whether the key made a signature or an HMAC; a wrong one is not an error.',
    body,
    items: 'batch_input',
    longestList: mostBatchItems,
    answers: resultOrBatch({ valid: Type.Boolean() }),
    run: verifyInputs,
  })

export const verifyData = verifyRoute('verify/:name')
export const verifyDataWithHash = verifyRoute('verify/:name/:hash_algorithm')
