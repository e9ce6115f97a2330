import type { KeyObject } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Algorithm, PairAlgorithm } from '../algorithms/algorithm.ts'
import { algorithms } from '../algorithms.ts'
import { reserved } from '../kek/identity.ts'
import type { History } from '../making/making.ts'
import { readPublicKey } from '../publickey.ts'
import { type ManagedMechanism, mechanismOf } from './mechanism.ts'
import type { ManagedRow } from './table.ts'

/** A key as it lies in the token. */
export interface Found {
  readonly handle: Handle
  readonly algorithm: Algorithm
  readonly publicKey: KeyObject | undefined
  readonly history: History
}

export type Wanted = Pick<ManagedRow, 'name' | 'keyLabel' | 'keyId' | 'mechanism' | 'keyBits'>

/**
 * The one object that a managed key names; undefined when there is none.
 * @param strict refuses a key that the token would let leave
 * @throws ApiError 400 when there are several, when it is a key of the server itself or of a kind that is not served
 * here
 */
export async function locate(hsm: Hsm, wanted: Wanted, strict: boolean): Promise<Found | undefined> {
  const mechanism = mechanismOf(wanted.mechanism)
  const found = await hsm.find({ class: mechanism.class, ...nameOf(wanted), token: true })
  const [handle] = found
  if (handle === undefined) return undefined
  const refuse = (why: string) => badRequest(`managed key "${wanted.name}": ${why}`)
  if (found.length > 1) throw refuse(`${found.length} objects of the token fit; name one by label and id`)
  const seen = await hsm.attributes(handle, facts)
  // However it was found, an object of our own is never used as a managed key.
  if (seen.id !== undefined && reserved(seen.id)) throw refuse('the object is a key of the server itself')
  if (strict && (seen.sensitive !== true || seen.extractable !== false)) {
    throw refuse('strict mode: the token would let this key leave')
  }
  const algorithm = identify(mechanism, seen)
  if (algorithm === undefined) throw refuse(`the object is no key for ${mechanism.name} of a size that is served here`)
  const bits = algorithm.class === 'secret' ? 8 * algorithm.sizeBytes : undefined
  if (bits !== undefined && wanted.keyBits !== 0 && wanted.keyBits !== bits) {
    throw refuse(`key_bits is ${wanted.keyBits}, and the object is a key of ${bits} bits`)
  }
  const publicKey = algorithm.class === 'private' ? await publicKeyOf(hsm, handle, algorithm, seen) : undefined
  if (algorithm.class === 'private' && publicKey === undefined) {
    throw refuse('the token shows no public key beside the private one, with the same CKA_ID')
  }
  const { local = false, neverExtractable = false, alwaysSensitive = false } = seen
  return { handle, algorithm, publicKey, history: { local, neverExtractable, alwaysSensitive, everPlaintext: !local } }
}

const facts = [
  ...(['keyType', 'id', 'label', 'sensitive', 'extractable', 'local', 'neverExtractable', 'alwaysSensitive'] as const),
  ...(['modulus', 'publicExponent', 'ecParameters', 'valueLength'] as const),
] as const
type Seen = Awaited<ReturnType<typeof attributesOf>>
const attributesOf = async (hsm: Hsm, handle: Handle) => hsm.attributes(handle, facts)

const nameOf = ({ keyLabel, keyId }: Pick<Wanted, 'keyLabel' | 'keyId'>): Partial<KeyTemplate> => ({
  ...(keyLabel === '' ? {} : { label: keyLabel }),
  ...(keyId === '' ? {} : { id: Buffer.from(keyId, 'hex') }),
})

/** The row of the table of algorithms that the object belongs to. */
function identify({ keyType }: ManagedMechanism, seen: Seen): Algorithm | undefined {
  if (seen.keyType !== keyType) return undefined
  return [...algorithms.values()].find((algorithm) => algorithm.keyType === keyType && algorithm.matches(seen))
}

/**
 * RSA private keys show it themselves; for others the public object does, with the same id, or label if there is no id.
 */
async function publicKeyOf(
  hsm: Hsm,
  handle: Handle,
  algorithm: PairAlgorithm,
  { id, label }: Seen,
): Promise<KeyObject | undefined> {
  if (algorithm.publicKey.onPrivate) return readPublicKey(hsm, handle, algorithm)
  const name = id?.length ? { id } : { label: label ?? '' }
  const [open] = await hsm.find({ class: 'public', keyType: algorithm.keyType, ...name, token: true })
  return open && readPublicKey(hsm, open, algorithm)
}
