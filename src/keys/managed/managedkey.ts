import { type KeyObject, constants as padding, publicEncrypt, randomBytes, randomUUID } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import { CKG, CKM } from '../../hsm/constants.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { MaybePromise } from '../../route.ts'
import type { Scheme } from '../algorithms/signature.ts'
import type { Blobs } from '../live/blobs.ts'
import { Handles } from '../live/handles.ts'
import { Material } from '../material.ts'
import { encodePublicKey, fingerprintOf } from '../publickey.ts'
import type { Approval } from '../use/approval.ts'
import { nameRefusal } from '../use/refusal.ts'
import { RsaCipher } from '../use/rsacipher.ts'
import { Signer } from '../use/signer.ts'
import { verify } from '../use/verify.ts'
import { checkValueOf, decryptAes, encryptAes, type Message } from './cipher.ts'
import type { Found } from './locate.ts'
import { type ManagedMechanism, mechanismOf } from './mechanism.ts'
import type { ManagedRow } from './table.ts'

export interface ManagedKeyOptions {
  readonly hsm: Hsm
  readonly row: ManagedRow
  readonly found: Found
  readonly blobs: Blobs
  readonly approval: Approval
  /** Milliseconds. */
  readonly now: number
  /** Finds the object once more, after its handle has become void. */
  locate(): Promise<Found>
}

/** A managed key found in its token and ready for use, as its row was at one revision. */
export class ManagedKey {
  readonly row: ManagedRow
  readonly hsm: Hsm
  readonly mechanism: ManagedMechanism
  /** Describes the key as it lies in the token; a version pins a copy. */
  readonly material: Material
  /** The name of its encryption counter: one for a key in a token, however many versions and managed keys use it. */
  readonly counter: string
  readonly #handles: Handles
  readonly #signer: Signer
  readonly #rsa: RsaCipher

  private constructor(options: ManagedKeyOptions, material: Material, oaepInToken: boolean) {
    const { hsm, row, found, blobs, approval } = options
    this.row = row
    this.hsm = hsm
    this.mechanism = mechanismOf(row.mechanism)
    this.material = material
    this.counter = material.row.fingerprint?.toString('hex', 0, counterBytes) ?? ''
    let first: Handle | undefined = found.handle
    const load = async (): Promise<Handle> => {
      const handle = first ?? (await this.#again(options)).handle
      first = undefined
      return handle
    }
    this.#handles = new Handles({ hsm, limit: 1, load })
    const handles = this.#handles
    this.#signer = new Signer({ hsm, blobs, handles, approval })
    this.#rsa = new RsaCipher({ hsm, handles, oaepInToken })
  }

  static async of(options: ManagedKeyOptions): Promise<ManagedKey> {
    const { hsm, row, found } = options
    const probed = row.mechanism === CKM.RSA_PKCS_OAEP && found.publicKey !== undefined
    return new ManagedKey(
      options,
      await describe(options, found),
      probed && (await decodesOaep(hsm, found.handle, found.publicKey)),
    )
  }

  /** Whether it is the key that another material describes. */
  is(other: Material): boolean {
    const { algorithm, fingerprint } = this.material.row
    const pinned = other.row.fingerprint
    if (algorithm !== other.row.algorithm) return false
    // Versions from before secret keys had a check value.
    if (pinned === null) return this.material.algorithm.class === 'secret'
    return fingerprint?.equals(pinned) === true
  }

  /** @throws ApiError 400 naming what does not fit */
  sign(input: Uint8Array, scheme: Scheme): MaybePromise<Buffer> {
    return this.#signer.sign(this.material, input, scheme)
  }

  encrypt(message: Message): MaybePromise<Buffer> {
    const { name, ivBytes } = this.mechanism
    if (ivBytes !== undefined) return nameRefusal(name, () => encryptAes(this.hsm, this.mechanism, this.#use, message))
    refuseAad(message, name)
    return this.#rsa.encrypt(this.material, message.bytes)
  }

  decrypt(message: Message): MaybePromise<Buffer> {
    const { name, ivBytes } = this.mechanism
    if (ivBytes !== undefined) return decryptAes(this.hsm, this.mechanism, this.#use, message)
    refuseAad(message, name)
    return this.#rsa.decrypt(this.material, message.bytes)
  }

  /** @throws ApiError 400 when a round trip fails: a public key of another pair, a usage that it lacks */
  async prove(scheme: Scheme): Promise<void> {
    const input = randomBytes(32)
    const [usage] = this.mechanism.usages
    const good =
      usage === 'sign'
        ? verify(this.material, input, await this.sign(input, scheme), scheme)
        : input.equals(await this.decrypt({ bytes: await this.encrypt({ bytes: input }) }))
    if (!good) throw badRequest(`managed key "${this.row.name}": the key in the token does not fit its public key`)
  }

  #use = <T>(work: (key: Handle) => MaybePromise<T>): MaybePromise<T> => this.#handles.use(this.material, work)

  async #again(options: ManagedKeyOptions): Promise<Found> {
    const found = await options.locate()
    if (!this.is(await describe(options, found))) throw changed(this.row.name)
    return found
  }
}

export const changed = (name: string): Error =>
  badRequest(`managed key "${name}" no longer names the key of this version: rotate to use the one it names now`)

function refuseAad({ aad }: Message, name: string): void {
  if (aad !== undefined) throw badRequest(`'associated_data' provided for ${name}, which authenticates nothing`)
}

const counterBytes = 16

/**
 * The row of a version with this key, its history as the token tells it. A secret key's fingerprint is its check value.
 */
async function describe({ hsm, row, now }: ManagedKeyOptions, found: Found): Promise<Material> {
  const { algorithm, publicKey, history, handle } = found
  const spki = publicKey ? encodePublicKey(publicKey) : null
  const fingerprint = spki ? fingerprintOf(spki) : await checkValueOf(hsm, mechanismOf(row.mechanism), handle)
  return new Material({
    ...{ id: randomUUID(), namespace: '', mount: '', rev: 1, epoch: 0, owner: '', version: 0, part: 'key' },
    algorithm: algorithm.name,
    sizeBytes: algorithm.class === 'secret' ? algorithm.sizeBytes : 0,
    residence: 'token',
    ...{ kek: null, mechanism: null, blob: null, ckaId: null, tokenSerial: null, publicKey: spki, fingerprint },
    exportable: false,
    ...history,
    origin: history.local ? 'generated' : 'imported',
    ...{ createdAt: now, createdBy: '', state: 'active' },
  })
}

/** Whether the token itself decodes OAEP with SHA-256: nothing was proven beforehand of somebody else's token. */
async function decodesOaep(hsm: Hsm, key: Handle, publicKey: KeyObject): Promise<boolean> {
  const message = randomBytes(16)
  const sealed = publicEncrypt({ key: publicKey, padding: padding.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, message)
  const oaep = { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256 }
  try {
    return message.equals(await hsm.decrypt(key, { type: CKM.RSA_PKCS_OAEP, oaep }, sealed))
  } catch (error) {
    if (error instanceof HsmRefusal) return false
    throw error
  }
}
