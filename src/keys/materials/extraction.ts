import { createHash, createHmac, randomUUIDv7 } from 'node:crypto'
import { wiping } from '../../crypto/wiping.ts'
import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import { algorithmOf } from '../algorithms.ts'
import { rewrap } from '../cluster/rewrapping.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { type History, plaintextHistory } from '../making/making.ts'
import { pad } from '../making/padding.ts'
import { ClosedSecret, withSecret, wrapSecret } from '../making/secret.ts'
import { derivedBytes, type Kdf } from '../use/derivation.ts'
import type { Draft } from './draft.ts'

/** RFC 2104: a key of zeros, padded to the block. */
const innerPad = Buffer.alloc(64, 0x36)
const outerPad = Buffer.alloc(64, 0x5c)
const generic: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] }

/** The HMAC key extracted from a root. */
interface Extracted {
  readonly blob: Buffer
  readonly sizeBytes: number
  readonly history: History
}

/** A root key, and the KEKs of both keys. */
interface Root {
  readonly draft: Draft
  readonly blob: Buffer
  readonly from: Kek
  readonly to: Kek
}

/**
 * Extracts from a root key the HMAC key that contexts are fed to: the `prk` part of a version. It is under the use KEK:
 * only the root may ever leave.
 * @param draft the root, made or imported and not stored yet
 */
export async function extract(
  { hsm, keks }: { readonly hsm: Hsm; readonly keks: Keks },
  draft: Draft,
  kdf: Kdf,
): Promise<Draft> {
  const { fields } = draft
  if (fields.blob == null || fields.kek == null) throw badRequest('keys that stay in the HSM cannot be derived from')
  const [from, to] = [await keks.get(fields.kek), await keks.active('use')]
  const made = await new Extraction(hsm, { draft, blob: fields.blob, from, to }).run(kdf)
  return {
    intent: undefined,
    fields: {
      ...fields,
      id: randomUUIDv7(),
      part: 'prk',
      algorithm: 'hmac',
      sizeBytes: made.sizeBytes,
      residence: 'wrapped',
      kek: to.row.id,
      mechanism: hsm.capabilities.kwp,
      blob: made.blob,
      publicKey: null,
      fingerprint: null,
      exportable: false,
      ...made.history,
    },
  }
}

class Extraction {
  readonly #hsm: Hsm
  readonly #root: Root

  constructor(hsm: Hsm, root: Root) {
    this.#hsm = hsm
    this.#root = root
  }

  run(kdf: Kdf): Promise<Extracted> {
    if (kdf === 'hkdf_sha256') return this.#isSeed ? this.#ofSeed() : this.#ofSecret()
    return this.#isSeed || this.#root.draft.fields.sizeBytes < derivedBytes ? this.#padded() : this.#copied()
  }

  get #isSeed(): boolean {
    return algorithmOf(this.#root.draft.fields.algorithm).class === 'private'
  }

  /**
   * HMAC(0, root), the root being the message, so that it stays in the token: SHA-256(inner pad ‖ root) by C_DigestKey
   * there, the outer hash here. The result is briefly in memory.
   */
  async #ofSecret(): Promise<Extracted> {
    const { blob, from } = this.#root
    this.#hsm.capabilities.require('digest-key')
    const root = await from.unwrap(blob, generic)
    try {
      const inner = await this.#hsm.digestKey(CKM.SHA256, innerPad, root, derivedBytes)
      // The inner hash is as secret as the result.
      const prk = wiping(inner, () => createHash('sha256').update(outerPad).update(inner).digest())
      return await this.#wrapped(await prk)
    } finally {
      await this.#hsm.destroy(root)
    }
  }

  /** The root is an enveloped seed, which is opened to be used anyway; the reference's key is seed ‖ public key. */
  async #ofSeed(): Promise<Extracted> {
    const prk = await this.#open((pair) => createHmac('sha256', Buffer.alloc(derivedBytes)).update(pair).digest())
    return this.#wrapped(prk)
  }

  /** The root itself, as an HMAC key: RFC 5649 binds no type. */
  async #copied(): Promise<Extracted> {
    const { draft, blob, from, to } = this.#root
    const { sizeBytes, local, neverExtractable, alwaysSensitive, everPlaintext } = draft.fields
    const history = { local, neverExtractable, alwaysSensitive, everPlaintext }
    return { ...(await rewrap(this.#hsm, from, to, blob, generic)), sizeBytes, history }
  }

  /** Tokens refuse HMAC keys shorter than the hash; padded with zeros it is the same key (padding.ts). */
  async #padded(): Promise<Extracted> {
    try {
      return await this.#wrapped(await this.#open(pad))
    } catch (error) {
      if (!(error instanceof ClosedSecret)) throw error
      throw badRequest('a key of 128 bits with the counter KDF must be exportable', { cause: error })
    }
  }

  async #wrapped(secret: Buffer): Promise<Extracted> {
    try {
      return {
        blob: await wrapSecret(this.#hsm, this.#root.to, secret),
        sizeBytes: secret.length,
        history: plaintextHistory,
      }
    } finally {
      secret.fill(0)
    }
  }

  /** Lends the root as the reference keeps it: a secret, or an Ed25519 seed and its public key, which ends the SPKI. */
  #open(use: (key: Buffer) => Buffer): Promise<Buffer> {
    const { draft, blob, from } = this.#root
    const { sizeBytes, publicKey } = draft.fields
    return withSecret(this.#hsm, from, blob, (filled) => {
      const root = filled.subarray(0, sizeBytes)
      if (!this.#isSeed) return use(root)
      const pair = Buffer.concat([root, publicKey?.subarray(-pointBytes) ?? Buffer.alloc(0)])
      return wiping(pair, () => use(pair))
    })
  }
}

const pointBytes = 32
