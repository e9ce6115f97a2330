import { Type } from 'typebox'
import { after } from '../../after.ts'
import { ApiError, badRequest } from '../../errors.ts'
import { boolean, integer, raw, text } from '../../field.ts'
import { algorithms } from '../../keys/algorithms.ts'
import { type Data, type MaybePromise, route } from '../../route.ts'
import { decodeField, decodeOptional } from './base64.ts'
import { answer } from './batch.ts'
import { makerOf, type TransitContext } from './context.ts'
import { type Item, readInputs } from './items.ts'
import { checkNonce } from './nonce.ts'
import type { Ring } from './readring.ts'
import { checkVersionToMake, versionToMake } from './ring.ts'
import { tag } from './tagged.ts'
import { attempt } from './withring.ts'

const body = Type.Object({
  plaintext: text({ about: 'What to encrypt, in base64; may be empty.' }),
  associated_data: text({ about: 'Authenticated and not encrypted, in base64.' }),
  context: text({ about: 'Derivation context of derived keys, in base64.' }),
  key_version: integer({ about: 'The version to encrypt with; 0 or absent is the latest.' }),
  nonce: text({ about: '12 bytes in base64; used by convergent keys of version 1 alone.' }),
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
    reference: 'string',
    type: 'string',
    convergent_encryption: 'boolean',
  },
  shared: ['key_version', 'associated_data', 'type', 'convergent_encryption'],
  required: { field: 'plaintext', missing: 'missing plaintext to encrypt' },
} as const
type Input = Item<typeof reading.shape>

/** What a token is asked to encrypt. */
interface Plain {
  readonly plaintext: Buffer
  readonly aad: Buffer | undefined
  /** 0 is the latest. */
  readonly version: number
}

function readPlain(input: Input, warn: (text: string) => void): Plain {
  const plaintext = decodeField('plaintext', input.plaintext ?? '')
  const aad = decodeOptional('associated_data', input.associated_data)
  checkNonce(input.nonce, warn)
  return { plaintext, aad, version: input.key_version ?? 0 }
}

/**
 * Encrypts under the version that is asked for; `warn` may be told of an overused key.
 * @throws ApiError 400 when that version must not encrypt, or keys of the type do not
 */
export function encryptPlain(
  context: TransitContext,
  ring: Ring,
  { plaintext, aad, version: requested }: Plain,
  warn: (text: string) => void,
): MaybePromise<Data> {
  const { version, material } = versionToMake(ring, requested, 'encryption')
  return after(context.material(material), (key) =>
    after(context.cipher.encrypt(key, { plaintext, aad }), ({ iv, sealed, warning }) => {
      if (warning) warn(warning)
      const payload = Buffer.concat([iv, sealed]).toString('base64')
      return { ciphertext: tag(version, payload), key_version: version }
    }),
  )
}

/** @throws ApiError 400 for what an upsert does not make */
function upsertType({ type, context, convergent_encryption: convergent }: Input): string {
  if (convergent && !context) {
    throw badRequest('convergent encryption requires derivation to be enabled, so context is required')
  }
  if (context) throw badRequest('derived keys are not available yet: send no context for a key that does not exist')
  const name = type || 'aes256-gcm96'
  const algorithm = algorithms.get(name)
  if (algorithm?.kind === 'aead') return name
  throw badRequest(
    algorithm?.kind === 'ec' ? `key type ${name} not supported for this operation` : `unknown key type ${name}`,
  )
}

/** Why the first version of a new key could not encrypt this. */
function faultOf(input: Input): ApiError | undefined {
  try {
    const { version } = readPlain(input, () => {})
    checkVersionToMake({ latestVersion: 1, minEncryptionVersion: 0 }, version, 'encryption')
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** @throws ApiError 400 when some items have a context and others have none */
function checkContexts(items: readonly Input[]): void {
  const having = items.filter(({ context }) => context).length
  if (having !== 0 && having !== items.length) {
    throw badRequest('context should be set either in all the request blocks or in none')
  }
}

export const encryptRoute = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'encrypt/:name',
  access: 'token',
  about: 'Encrypts, and makes the key when there is none and the token may create it.',
  body,
  items: 'batch_input',
  danger: 'none',
  exists: ({ rings }, mount, { name = '' }) => after(rings.get(mount, name), (ring) => ring !== undefined),
  run(call) {
    const { context, mount, params, granted, caller } = call
    const name = params.name ?? ''
    const inputs = readInputs(call.body, reading)
    const { items } = inputs
    checkContexts(items)
    const rules = { partialStatus: 400 } as const
    const encryptWith = (ring: Ring) =>
      answer(call, inputs, rules, (input, warn) => encryptPlain(context, ring, readPlain(input, warn), warn))
    return after(context.rings.get(mount, name), (ring) => {
      if (ring !== undefined || granted !== 'create') {
        return attempt(call, ring, 'encryption key not found', encryptWith)
      }
      const type = upsertType(items[0] ?? {})
      // A request of which nothing can be encrypted leaves no key behind.
      if (items.some((item) => faultOf(item) === undefined)) {
        return context.rings.create(mount, { name, type }, makerOf(caller)).then(encryptWith)
      }
      return answer(call, inputs, rules, (input) => {
        throw faultOf(input)
      })
    })
  },
})
