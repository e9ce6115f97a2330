import type { KeyObject } from 'node:crypto'
import { wrapKey } from '../../crypto/keywrap.ts'
import { badRequest } from '../../errors.ts'
import { CKK } from '../../hsm/constants.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Pair, Secret } from '../algorithms/algorithm.ts'
import type { Kek } from '../kek/keks.ts'
import { encodePublicKey } from '../publickey.ts'
import type { Origin, Residence } from '../tables.ts'
import type { Envelope } from '../transfer/envelope.ts'
import { historyOf, type Made, plaintextHistory, privateTemplate } from './making.ts'
import { pad } from './padding.ts'
import { writePkcs8 } from './pair.ts'
import { wrapSecret } from './secret.ts'
import { lendTransport, withTransport } from './transport.ts'

/** A key that was made elsewhere, on its way into the token. */
export interface IncomingKey {
  readonly origin: Origin
  /** Puts it into the token and wraps it there by the KEK. */
  wrap(hsm: Hsm, kek: Kek, residence: Residence): Promise<Made>
  /** Makes a persistent object of it. @throws ApiError 400 where the HSM cannot */
  reside(hsm: Hsm, template: KeyTemplate): Promise<Made>
}

const stays = async (): Promise<Made> => {
  throw new Error('secret keys are never token objects')
}

const outside = (blob: Buffer | undefined, publicKey?: KeyObject): Made => ({
  blob,
  spki: publicKey && encodePublicKey(publicKey),
  history: plaintextHistory,
})

/** A secret that is in memory already; the caller wipes it. */
export const incomingSecret = (origin: IncomingKey['origin'], secret: Buffer, { mac }: Secret): IncomingKey => ({
  origin,
  async wrap(hsm, kek) {
    const bytes = mac ? pad(secret) : Buffer.from(secret)
    try {
      return outside(await wrapSecret(hsm, kek, bytes))
    } finally {
      bytes.fill(0)
    }
  },
  reside: stays,
})

/** A pair that is in memory already; the caller wipes it. */
export const incomingPair = (origin: IncomingKey['origin'], pair: Pair): IncomingKey => ({
  origin,
  async wrap(hsm, kek, residence) {
    if (residence === 'enveloped') return outside(await wrapSecret(hsm, kek, pair.inner), pair.publicKey)
    return outside(await passPair(hsm, pair, (key) => kek.wrap(key)), pair.publicKey)
  },
  async reside(hsm, template) {
    const { creation } = pair.algorithm.privateKey
    if (creation === undefined) throw badRequest(`the HSM keeps no ${pair.algorithm.name} key from outside`)
    hsm.capabilities.require(creation.ability)
    await hsm.create({ ...template, ...creation.attributes, value: pair.inner })
    return outside(undefined, pair.publicKey)
  },
})

/** A pair that the token made and showed: it is wrapped where it lies. `inner` is the caller's to wipe. */
export const incomingReadable = ({ key, inner, spki }: { key: Handle; inner: Buffer; spki: Buffer }): IncomingKey => ({
  origin: 'generated',
  async wrap(hsm, kek, residence) {
    const blob = residence === 'enveloped' ? await wrapSecret(hsm, kek, inner) : await kek.wrap(key)
    const history = { ...(await historyOf(hsm, key)), everPlaintext: true }
    return { blob, spki, history }
  },
  reside: async () => {
    throw badRequest('a key that lives in the HSM alone cannot be handed out, and the HSM wraps no such key')
  },
})

/** Lends the private key as a session object that can only be wrapped. */
async function passPair<T>(hsm: Hsm, pair: Pair, use: (key: Handle) => T | Promise<T>): Promise<T> {
  const pkcs8 = writePkcs8(pair)
  try {
    return await lendTransport(hsm, async (value) => {
      const blob = wrapKey(value, pkcs8)
      return withTransport(hsm, value, async (transport) => {
        const { algorithm, publicKey } = pair
        const told = algorithm.privateKey.unwrapping?.(publicKey)
        const template = { ...privateTemplate(algorithm), ...told, extractable: true, usages: [] }
        return lend(hsm, await hsm.unwrap(transport, hsm.capabilities.kwp, blob, template), use)
      })
    })
  } finally {
    pkcs8.fill(0)
  }
}

/** The same text for any bad ciphertext, so that it does not tell which step failed. */
export const badEnvelope = (cause?: unknown): Error =>
  badRequest(
    'the ciphertext cannot be unwrapped: it must be a 256-bit AES key encrypted to the wrapping key by RSA-OAEP with the given hash_function, followed by the key wrapped under that AES key by AES-KWP (RFC 5649)',
    { cause },
  )

/**
 * A symmetric key that goes from its envelope into the token without passing through memory.
 * @throws ApiError 400 badEnvelope, or naming the size
 */
export const incomingEnvelope = (envelope: Envelope, type: string, sizeBytes: number): IncomingKey => ({
  origin: 'imported',
  wrap: (hsm, kek) =>
    withTransport(hsm, envelope.transport, async (transport) => {
      const { kwp } = hsm.capabilities
      const template: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [], extractable: true }
      const key = await unwrapped(() => hsm.unwrap(transport, kwp, envelope.blob, template))
      return lend(hsm, key, async () => {
        // SoftHSM pads secrets with zeros and does not tell their length: a shorter one makes another blob.
        const exact = (await hsm.wrap(transport, kwp, key)).equals(envelope.blob)
        const { valueLength } = await hsm.attributes(key, ['valueLength'])
        const bytes = exact ? valueLength || envelope.blob.length - 8 : undefined
        if (bytes !== sizeBytes) throw wrongSize(type, bytes)
        return outside(await kek.wrap(key))
      })
    }),
  reside: stays,
})

/** The reference's text; without a number where the token does not show it. */
export const wrongSize = (type: string, bytes?: number): Error =>
  badRequest(`invalid key size${bytes === undefined ? '' : ` ${bytes} bytes`} for key type ${type}`)

async function unwrapped(call: () => Handle | Promise<Handle>): Promise<Handle> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof HsmRefusal ? badEnvelope(error) : error
  }
}

async function lend<T>(hsm: Hsm, key: Handle, use: (key: Handle) => T | Promise<T>): Promise<T> {
  try {
    return await use(key)
  } finally {
    await hsm.destroy(key)
  }
}
