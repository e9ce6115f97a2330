import { readFirst } from '../../crypto/der.ts'
import { unwrapKey } from '../../crypto/keywrap.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import { readSpkiOf } from '../publickey.ts'
import { privateTemplate, publicTemplate } from './making.ts'
import { readPkcs8 } from './pair.ts'
import { lendTransport, withTransport } from './transport.ts'

/** The token that pairs are read from, and its proven abilities. */
export interface ReadableSource {
  readonly hsm: Hsm
  readonly capabilities: Pick<Capabilities, 'supports' | 'require'>
}

/** A pair in the token, as two session objects. */
export interface TokenPair {
  readonly privateKey: Handle
  readonly publicKey: Handle
}

/** A key pair outside the token. */
export interface ReadPair {
  /** As `Pair` has it; the caller wipes it. */
  readonly inner: Buffer
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
}

const isShown = ({ capabilities }: ReadableSource, { privateKey }: PairAlgorithm): boolean =>
  capabilities.supports(privateKey.readable.ability)

/**
 * Makes a pair whose private key can be read once: not sensitive where the token shows such keys, else extractable
 * only.
 * @throws ApiError 400 where the HSM neither shows keys of the type nor wraps them
 */
export async function generateReadable(source: ReadableSource, algorithm: PairAlgorithm): Promise<TokenPair> {
  const { hsm, capabilities } = source
  capabilities.require(algorithm.using)
  const shown = isShown(source, algorithm)
  if (!shown) capabilities.require(algorithm.wrapping)
  const template = { ...privateTemplate(algorithm), sensitive: !shown, extractable: true }
  return hsm.generateKeyPair(algorithm.generation, { ...publicTemplate(algorithm), modifiable: true }, template)
}

/** Reads the pair; by its attributes, or wrapped (RFC 5649) under a temporary key. */
export async function readTokenPair(
  source: ReadableSource,
  algorithm: PairAlgorithm,
  { privateKey, publicKey }: TokenPair,
): Promise<ReadPair> {
  const { hsm } = source
  const { bits, spki } = await readSpkiOf(hsm, publicKey, algorithm)
  const inner = isShown(source, algorithm)
    ? await readAttributes(hsm, algorithm, { privateKey, publicKey }, bits)
    : await readWrapped(hsm, algorithm, privateKey, bits)
  return { inner, spki }
}

/** Destroys both halves: the public one also when the destruction of the private one throws. */
export async function destroyPair(hsm: Hsm, { privateKey, publicKey }: TokenPair): Promise<void> {
  try {
    await hsm.destroy(privateKey)
  } finally {
    await hsm.destroy(publicKey)
  }
}

async function readAttributes(hsm: Hsm, algorithm: PairAlgorithm, pair: TokenPair, bits: Buffer): Promise<Buffer> {
  const { attributes, inner } = algorithm.privateKey.readable
  const shown = await hsm.reveal(pair.privateKey, attributes, pair.publicKey)
  try {
    const read = inner(shown, bits)
    if (read === undefined) throw new Error(`the token does not show a ${algorithm.name} key that was made readable`)
    return read
  } finally {
    for (const value of Object.values(shown)) value?.fill(0)
  }
}

function readWrapped(hsm: Hsm, algorithm: PairAlgorithm, key: Handle, bits: Buffer): Promise<Buffer> {
  return lendTransport(hsm, async (value) => {
    const blob = await withTransport(hsm, value, async (transport) => hsm.wrap(transport, hsm.capabilities.kwp, key))
    const pkcs8 = unwrapKey(value, blob)
    if (pkcs8 === undefined) throw new Error(`the token does not wrap ${algorithm.name} keys as RFC 5649 says`)
    try {
      return algorithm.privateKey.readable.copy(readPkcs8(readFirst(pkcs8)).inner, bits)
    } finally {
      pkcs8.fill(0)
    }
  })
}
