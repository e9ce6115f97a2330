import { randomUUIDv7 } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { after } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import { hashOf } from '../../crypto/hashes.ts'
import { ApiError, badRequest, unavailable } from '../../errors.ts'
import { PinRefused } from '../../hsm/faults.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { MaybePromise, Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Abilities } from '../algorithms/algorithm.ts'
import type { Scheme } from '../algorithms/signature.ts'
import type { Blobs } from '../live/blobs.ts'
import type { Material } from '../material.ts'
import type { Draft } from '../materials/draft.ts'
import type { Approval } from '../use/approval.ts'
import type { Certification, CertificationSigner } from '../use/certification.ts'
import type { Cipher } from '../use/cipher.ts'
import { verify } from '../use/verify.ts'
import type { Message } from './cipher.ts'
import { generate } from './generate.ts'
import type { ManagedHsms, TokenAddress } from './hsms.ts'
import { locate, type Wanted } from './locate.ts'
import { changed, ManagedKey } from './managedkey.ts'
import { type ManagedUsage, mechanismOf } from './mechanism.ts'
import type { Pins } from './pins.ts'
import type { Entry, Registry } from './registry.ts'
import type { ManagedRow } from './table.ts'

export interface ManagedKeysOptions {
  readonly database: Database
  readonly registry: Registry
  readonly hsms: ManagedHsms
  readonly pins: Pins
  readonly blobs: Blobs
  readonly approval: Approval
  readonly certification: Certification
  readonly cipher: Pick<Cipher, 'count'>
  readonly clock: Clock
  readonly strict: boolean
  /** The mount of a uuid: its tuning says which managed keys it may use. */
  mount(uuid: string): MaybePromise<Mount | undefined>
}

/** Which managed key: by name or uuid. */
export interface Reference {
  readonly name?: string | undefined
  readonly id?: string | undefined
}

/** A managed key that a version of a mount's key uses, and the key as it was when the version was made. */
export interface Use {
  /** Uuids. */
  readonly mount: string
  readonly managedKey: string
  readonly pinned: Material
}

const generateSeconds = 60

/** Keys in tokens of others, for the mounts and uses that their rules allow. */
export class ManagedKeys {
  readonly #options: ManagedKeysOptions
  readonly #keys = new LRUCache<string, ManagedKey>({ max: 1000 })
  #making: Promise<unknown> = Promise.resolve()

  constructor(options: ManagedKeysOptions) {
    this.#options = options
  }

  /**
   * Prepares a new version of a mount's key that uses a managed key; makes the key in its token if that is allowed.
   * @throws ApiError 400 or 403 naming the rule; 503 while the token is away
   */
  async prepare(mount: string, { name, id }: Reference, createdBy: string): Promise<{ id: string; draft: Draft }> {
    const { registry, approval, clock } = this.#options
    const entry = await (id ? registry.get(id.toLowerCase()) : registry.named((name ?? '').toLowerCase()))
    const { row } = entry ?? {}
    if (entry === undefined || row === undefined) throw badRequest(`managed key "${id || name}" does not exist`)
    if (name && name.toLowerCase() !== row.name) throw badRequest('managed_key_name and managed_key_id name two keys')
    await this.#allow(row, mount)
    // Loaded again: the object may have been replaced since it was opened.
    const key = await this.#load(entry, true)
    approval.checkNew(key.material.algorithm)
    await key.prove(schemeOf(key, 'sha2-256'))
    const { owner, version, rev, epoch, ...fields } = key.material.row
    // Every use has a row of its own.
    return {
      id: row.id,
      draft: { intent: undefined, fields: { ...fields, id: randomUUIDv7(), createdBy, createdAt: clock.wall() } },
    }
  }

  /** Undefined once the managed key was deleted. */
  nameOf(id: string): MaybePromise<string | undefined> {
    return after(this.#options.registry.get(id), (entry) => entry?.row.name)
  }

  /** The mechanism's abilities; all false once the managed key was deleted. */
  abilitiesOf(id: string): MaybePromise<Abilities> {
    return after(this.#options.registry.get(id), (entry) => {
      const usages: readonly string[] = entry === undefined ? [] : mechanismOf(entry.row.mechanism).usages
      return { encrypt: usages.includes('encrypt'), sign: usages.includes('sign'), derive: false }
    })
  }

  /** @param chosen whether the caller named the padding: else it is the mechanism's @throws ApiError 400 */
  sign(use: Use, input: Uint8Array, scheme: Scheme, chosen: boolean): MaybePromise<Buffer> {
    return after(this.#use(use, 'sign'), (key) => key.sign(input, fitted(key.row, scheme, chosen)))
  }

  /** A signer of certificates with the key; every signature passes the checks of `sign`. @throws ApiError 400 */
  certifier(use: Use): MaybePromise<CertificationSigner> {
    const { certification } = this.#options
    return after(this.#entry(use, 'sign'), ({ row }) =>
      certification.over({
        material: use.pinned,
        padding: mechanismOf(row.mechanism).padding,
        sign: (input, scheme) => this.sign(use, input, scheme, true),
      }),
    )
  }

  /** Public work on the host, by the public key that the version pins: it needs no token. */
  verify(use: Use, input: Uint8Array, signature: Uint8Array, scheme: Scheme, chosen: boolean): MaybePromise<boolean> {
    return after(this.#entry(use, 'verify'), ({ row }) =>
      verify(use.pinned, input, signature, fitted(row, scheme, chosen)),
    )
  }

  /**
   * AES-GCM is counted towards 2^32, over all versions of a key in a token together.
   * @throws ApiError 400 for a mechanism that does not encrypt, or an IV of the wrong length; in strict mode after 2^32
   */
  encrypt(use: Use, message: Message, warn: (text: string) => void): MaybePromise<Buffer> {
    return after(this.#use(use, 'encrypt'), (key) => {
      if (!key.mechanism.counted) return key.encrypt(message)
      return after(this.#options.cipher.count(use.pinned.id, key.counter), (warning) => {
        if (warning) warn(warning)
        return key.encrypt(message)
      })
    })
  }

  /**
   * @param options.blind the caller may not learn the plaintext
   * @throws ApiError 400; also for a mechanism whose refusals tell about the plaintext, when `blind`
   */
  decrypt(use: Use, message: Message, { blind }: { readonly blind: boolean }): MaybePromise<Buffer> {
    return after(this.#use(use, 'decrypt'), (key) => {
      if (blind && key.mechanism.oracle) throw badRequest(tellsTooMuch(key.mechanism.name))
      return key.decrypt(message)
    })
  }

  /**
   * Signs random data and verifies it; makes the key where that is allowed. @throws ApiError 400 saying what is wrong
   */
  async test(entry: Entry, hashName: string): Promise<void> {
    mayUse(entry.row, 'sign')
    const key = await this.#load(entry, true)
    await key.prove(schemeOf(key, hashName))
  }

  /**
   * Logs in with a PIN that is not stored yet, and looks at the key.
   * @throws ApiError 400 for an unusable PIN or key, 429 after too many wrong PINs of our own token
   */
  async admit(row: Wanted & TokenAddress, pin: string): Promise<void> {
    let hsm: Hsm
    try {
      hsm = await this.#options.hsms.admit(row, pin)
    } catch (error) {
      throw error instanceof PinRefused ? badRequest(`${error.message}; it is not tried again`) : error
    }
    const found = await locate(hsm, row, this.#options.strict)
    if (found === undefined && row.keyId !== '') throw badRequest(`the token has no key with id ${row.keyId}`)
  }

  #entry({ mount, managedKey }: Use, usage: ManagedUsage): MaybePromise<Entry> {
    return after(this.#options.registry.get(managedKey), (entry) => {
      if (entry === undefined) throw badRequest('the managed key of this version was deleted')
      mayUse(entry.row, usage)
      return after(this.#allow(entry.row, mount), () => entry)
    })
  }

  #use(use: Use, usage: ManagedUsage): MaybePromise<ManagedKey> {
    return after(this.#entry(use, usage), (entry) =>
      after(this.#open(entry), (key) => {
        if (!key.is(use.pinned)) throw changed(entry.row.name)
        return key
      }),
    )
  }

  /** @throws ApiError 403 unless the key is for every mount, or the mount lists it */
  #allow(row: ManagedRow, mount: string): MaybePromise<void> {
    if (row.anyMount) return
    return after(this.#options.mount(mount), (found) => {
      const listed = found?.config.allowed_managed_keys
      if (Array.isArray(listed) && listed.some((name) => String(name).toLowerCase() === row.name)) return
      throw new ApiError(
        403,
        `managed key "${row.name}" is not for this mount: set any_mount on it, or list it in the mount's allowed_managed_keys`,
      )
    })
  }

  #open(entry: Entry): MaybePromise<ManagedKey> {
    const { row } = entry
    const known = this.#keys.get(row.id)
    if (known?.row.rev === row.rev && known.hsm === this.#options.hsms.peek(row)) return known
    return this.#load(entry, false)
  }

  async #load(entry: Entry, make: boolean): Promise<ManagedKey> {
    const { row } = entry
    const { blobs, approval, clock, strict } = this.#options
    const hsm = await this.#enter(entry)
    if (make && (await locate(hsm, row, strict)) === undefined) await this.#make(hsm, row)
    const find = async () => {
      const found = await locate(hsm, row, strict)
      if (found === undefined) throw badRequest(`managed key "${row.name}": the token has no such key`)
      return found
    }
    const options = { hsm, row, found: await find(), blobs, approval, now: clock.wall(), locate: find }
    const key = await ManagedKey.of(options)
    this.#keys.set(row.id, key)
    return key
  }

  async #enter(entry: Entry): Promise<Hsm> {
    const { hsms, pins, registry } = this.#options
    const { row, pin } = entry
    const refused = `managed key "${row.name}": the token refused its PIN, which is not tried again until it is changed`
    if (row.pinRefused) throw unavailable(refused)
    try {
      return await hsms.open(row, await pins.open(pin))
    } catch (error) {
      if (!(error instanceof PinRefused)) throw error
      if (error.reason === 'locked') throw unavailable(`managed key "${row.name}": ${error.message}`)
      await registry.refused(entry)
      throw unavailable(refused)
    }
  }

  /** One at a time, over all workers: two keys of one label could not be used. */
  #make(hsm: Hsm, row: ManagedRow): Promise<void> {
    const { database, strict } = this.#options
    const made = this.#making.then(async () => {
      const lease = await database.jobLease(`managed key ${row.id}`, generateSeconds)
      if (lease === undefined) throw unavailable('this key is being made by another worker')
      try {
        if ((await locate(hsm, row, strict)) === undefined) await generate(hsm, row)
      } finally {
        await lease.release()
      }
    })
    this.#making = made.catch(() => undefined)
    return made
  }
}

/** @throws ApiError 400 when the key's settings or mechanism do not allow the usage */
function mayUse({ name, usages, mechanism: number }: ManagedRow, usage: ManagedUsage): void {
  const mechanism = mechanismOf(number)
  if (!mechanism.usages.some((one) => one === usage)) {
    throw badRequest(`managed key "${name}" is for ${mechanism.name}, which does not ${usage}`)
  }
  if (!usages.includes(usage))
    throw badRequest(`managed key "${name}" may not ${usage}: its usages are ${usages.join(', ')}`)
}

const tellsTooMuch = (mechanism: string): string =>
  `rewrap is not for ${mechanism}: its refusals would show callers who may not decrypt whether a padding is good`

/** @throws ApiError 400 for a padding that the mechanism does not make */
function fitted({ name, mechanism: number }: ManagedRow, scheme: Scheme, chosen: boolean): Scheme {
  const { padding, name: mechanism } = mechanismOf(number)
  if (padding === undefined || padding === scheme.padding) return scheme
  if (!chosen) return { ...scheme, padding }
  throw badRequest(`managed key "${name}" signs by ${mechanism}: signature_algorithm must be ${padding}`)
}

const schemeOf = ({ mechanism }: ManagedKey, hashName: string): Scheme => ({
  ...{ hash: hashOf(hashName), prehashed: false, saltLength: 'hash', marshaling: 'asn1' },
  padding: mechanism.padding ?? 'pss',
})
