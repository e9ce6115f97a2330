import { constants, type KeyObject, publicEncrypt } from 'node:crypto'
import { hashOf } from '../../crypto/hashes.ts'
import { decodeOaep, mostOaepBytes } from '../../crypto/oaep.ts'
import { withoutStackTraces } from '../../crypto/stacktraces.ts'
import { badRequest } from '../../errors.ts'
import { CKG, CKM } from '../../hsm/constants.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Mechanism } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import type { Oaep } from '../algorithms/algorithm.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'

/** OAEP on the wire: SHA-256 for the label and for MGF1, empty label. */
const hash = hashOf('sha2-256')
const oaepMechanism: Mechanism = { type: CKM.RSA_PKCS_OAEP, oaep: { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256 } }

/** RSA-OAEP with a material: the public half on the host, the private one in the token. */
export class RsaCipher {
  readonly #hsm: Hsm
  readonly #handles: Handles
  readonly #oaepInToken: boolean

  /** @param options oaepInToken: whether the token decodes; by default as it has proven */
  constructor(options: { hsm: Hsm; handles: Handles; oaepInToken?: boolean }) {
    this.#hsm = options.hsm
    this.#handles = options.handles
    this.#oaepInToken = options.oaepInToken ?? options.hsm.capabilities.supports('oaep-sha256')
  }

  /** @returns as many bytes as the modulus has @throws ApiError 400 for a plaintext longer than the modulus takes */
  encrypt(material: Material, plaintext: Uint8Array): Buffer {
    const { modulusBytes } = oaepOf(material)
    if (plaintext.length > mostOaepBytes(modulusBytes, hash)) {
      throw badRequest('failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size')
    }
    const { publicKey: key } = material
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: hash.node }
    return withoutStackTraces(() => publicEncrypt({ key, ...padding }, plaintext))
  }

  /**
   * The token decodes where it can OAEP with SHA-256; else it gives the raw block and the host decodes (oaep.ts).
   * @throws ApiError 400 with one text for any failure; naming the mechanism where the token has neither
   */
  decrypt(material: Material, ciphertext: Uint8Array): MaybePromise<Buffer> {
    const { modulusBytes } = oaepOf(material)
    if (!material.complete) {
      throw badRequest('cannot decrypt ciphertext, key version does not have a private counterpart')
    }
    const { capabilities } = this.#hsm
    const inToken = this.#oaepInToken
    if (!inToken && !capabilities.supports('rsa-raw')) capabilities.require('oaep-sha256')
    if (!inRange(ciphertext, material.publicKey, modulusBytes)) throw failed()
    const done = inToken ? (plaintext: Buffer) => plaintext : (raw: Buffer) => decoded(raw, modulusBytes)
    try {
      const answer = this.#handles.use(material, (key) =>
        this.#hsm.decrypt(key, inToken ? oaepMechanism : { type: CKM.RSA_X_509 }, ciphertext),
      )
      return answer instanceof Promise ? answer.then(done).catch(uniform) : done(answer)
    } catch (error) {
      return uniform(error)
    }
  }
}

function oaepOf({ algorithm }: Material): Oaep {
  if (algorithm.oaep !== undefined) return algorithm.oaep
  throw new Error(`keys of type ${algorithm.name} are no RSA keys`)
}

/** Whether it is a number below the modulus; tokens refuse others in different ways. Both are public. */
const inRange = (ciphertext: Uint8Array, key: KeyObject, bytes: number): boolean =>
  ciphertext.length === bytes && Buffer.compare(ciphertext, modulusOf(key)) < 0

const moduli = new WeakMap<KeyObject, Buffer>()

/** Big-endian; computed once per key, since an export costs more than the rest of the work around a decryption. */
function modulusOf(key: KeyObject): Buffer {
  const modulus = moduli.get(key) ?? Buffer.from(key.export({ format: 'jwk' }).n ?? '', 'base64url')
  moduli.set(key, modulus)
  return modulus
}

/** Some tokens leave out the zeros at the front. */
function decoded(raw: Buffer, bytes: number): Buffer {
  const block = Buffer.alloc(bytes)
  block.set(raw, bytes - raw.length)
  const plaintext = decodeOaep(block, hash)
  raw.fill(0)
  block.fill(0)
  if (plaintext === undefined) throw failed()
  return plaintext
}

const failed = (cause?: unknown): Error =>
  badRequest('failed to RSA decrypt the ciphertext: crypto/rsa: decryption error', { cause })

function uniform(error: unknown): never {
  throw error instanceof HsmRefusal ? failed(error) : error
}
