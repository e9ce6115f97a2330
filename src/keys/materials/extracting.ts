import { createHash, createHmac, randomUUID } from 'node:crypto'
import { wiping } from '../../crypto/wiping.ts'
import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import { algorithmOf } from '../algorithms.ts'
import { rewrap } from '../cluster/rewrapping.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { type History, seen } from '../making/making.ts'
import { pad } from '../making/padding.ts'
import { ClosedSecret, withSecret, wrapSecret } from '../making/secret.ts'
import { derivedBytes, type Kdf } from '../use/derivation.ts'
import type { Draft } from './materials.ts'

/** RFC 2104: a key of zeros, filled up to the block. */
const innerPad = Buffer.alloc(64, 0x36)
const outerPad = Buffer.alloc(64, 0x5c)
const generic: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] }

interface Extracted {
  readonly blob: Buffer
  readonly sizeBytes: number
  readonly history: History
}

/** Makes of a root key the HMAC key that contexts are fed to. It is under the use KEK: the root alone may ever leave. */
export class Extracting {
  readonly #hsm: Hsm
  readonly #keks: Keks

  constructor(options: { hsm: Hsm; keks: Keks }) {
    this.#hsm = options.hsm
    this.#keks = options.keks
  }

  /**
   * The `prk` part of a version, to be stored with the same owner as its root.
   * @param root the key, made or imported and not stored yet; an Ed25519 key must be enveloped (`derived` of prepare)
   * @throws ApiError 400 naming the mechanism that the token lacks
   */
  async prepare(root: Draft, kdf: Kdf): Promise<Draft> {
    const { fields } = root
    if (fields.blob == null || fields.kek == null) throw badRequest('keys that stay in the HSM cannot be derived from')
    const [from, to] = [await this.#keks.get(fields.kek), await this.#keks.active('use')]
    const made = await this.#extract(root, fields.blob, kdf, from, to)
    return {
      intent: undefined,
      fields: {
        ...fields,
        id: randomUUID(),
        part: 'prk',
        algorithm: 'hmac',
        sizeBytes: made.sizeBytes,
        residence: 'wrapped',
        kek: to.row.id,
        mechanism: this.#hsm.capabilities.kwp,
        blob: made.blob,
        publicKey: null,
        fingerprint: null,
        exportable: false,
        ...made.history,
      },
    }
  }

  #extract(root: Draft, blob: Buffer, kdf: Kdf, from: Kek, to: Kek): Promise<Extracted> {
    const pair = algorithmOf(root.fields.algorithm).kind === 'ed25519'
    if (kdf === 'hmac-sha256-counter') {
      return pair || root.fields.sizeBytes < derivedBytes
        ? this.#padded(root, blob, from, to)
        : this.#copied(root, blob, from, to)
    }
    return pair ? this.#ofSeed(root, blob, from, to) : this.#ofSecret(blob, from, to)
  }

  /**
   * HMAC(0, root), the root being the message, so that it stays in the token: SHA-256(inner pad ‖ root) by C_DigestKey there, the
   * outer hash here. The result is in memory for this moment.
   */
  async #ofSecret(blob: Buffer, from: Kek, to: Kek): Promise<Extracted> {
    this.#hsm.capabilities.require('digest-key')
    const root = await from.unwrap(blob, generic)
    try {
      const inner = await this.#hsm.digestKey(CKM.SHA256, innerPad, root, derivedBytes)
      // Whoever has the inner hash has the result.
      const prk = wiping(inner, () => createHash('sha256').update(outerPad).update(inner).digest())
      return await this.#wrapped(await prk, to)
    } finally {
      await this.#hsm.destroy(root)
    }
  }

  /** The root is an enveloped seed, which is opened to be used anyway; the reference's key is seed ‖ public key. */
  async #ofSeed(root: Draft, blob: Buffer, from: Kek, to: Kek): Promise<Extracted> {
    const prk = await withPair(this.#hsm, root, blob, from, (pair) =>
      createHmac('sha256', Buffer.alloc(derivedBytes)).update(pair).digest(),
    )
    return this.#wrapped(prk, to)
  }

  async #wrapped(secret: Buffer, to: Kek): Promise<Extracted> {
    try {
      return { blob: await wrapSecret(this.#hsm, to, secret), sizeBytes: secret.length, history: seen }
    } finally {
      secret.fill(0)
    }
  }

  /** The root itself, as an HMAC key: RFC 5649 binds no type. */
  async #copied({ fields }: Draft, blob: Buffer, from: Kek, to: Kek): Promise<Extracted> {
    const { local, neverExtractable, alwaysSensitive, everPlaintext } = fields
    const history = { local, neverExtractable, alwaysSensitive, everPlaintext }
    return { ...(await rewrap(this.#hsm, from, to, blob, generic)), sizeBytes: fields.sizeBytes, history }
  }

  /** Tokens refuse HMAC keys shorter than the hash; filled up with zeros it is the same key (padding.ts). */
  async #padded(root: Draft, blob: Buffer, from: Kek, to: Kek): Promise<Extracted> {
    try {
      const open = algorithmOf(root.fields.algorithm).kind === 'ed25519' ? withPair : withRoot
      return await this.#wrapped(await open(this.#hsm, root, blob, from, pad), to)
    } catch (error) {
      if (!(error instanceof ClosedSecret)) throw error
      throw badRequest('a key of 128 bits with the counter KDF must be exportable', { cause: error })
    }
  }
}

const withRoot = (hsm: Hsm, root: Draft, blob: Buffer, kek: Kek, use: (secret: Buffer) => Buffer): Promise<Buffer> =>
  withSecret(hsm, kek, blob, (filled) => use(filled.subarray(0, root.fields.sizeBytes)))

const pointBytes = 32

/** An Ed25519 key as the reference keeps it: 32 bytes of seed, 32 of public key, which end its SPKI. */
const withPair = (hsm: Hsm, root: Draft, blob: Buffer, kek: Kek, use: (pair: Buffer) => Buffer): Promise<Buffer> =>
  withRoot(hsm, root, blob, kek, (seed) => {
    const pair = Buffer.concat([seed, root.fields.publicKey?.subarray(-pointBytes) ?? Buffer.alloc(0)])
    try {
      return use(pair)
    } finally {
      pair.fill(0)
    }
  })
