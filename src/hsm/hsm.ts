import type { Clock } from '../clock.ts'
import type { ApiError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import { aloneMeanwhile } from '../turns/alone.ts'
import { type AttributeName, type AttributeValues, answered, asking } from './attribute.ts'
import { assumed, Capabilities } from './capabilities.ts'
import { CKM, CKR } from './constants.ts'
import { Failure, outcome } from './faults.ts'
import { findings } from './findings.ts'
import { Handle, StaleHandle } from './handle.ts'
import { isSlow } from './measure.ts'
import { fitsMechanism, isRsa, type Mechanism } from './mechanism.ts'
import type { Run } from './selftest/bench.ts'
import { Link, type TokenIdentity } from './session/link.ts'
import type { Arguments, Operation, Result } from './session/operations.ts'
import { type EpochListener, Service } from './session/service.ts'
import { Threads } from './session/threads.ts'
import type { TokenInfo, TokenSelector } from './slots.ts'
import { type KeyTemplate, search, spell, spellPair } from './template.ts'

export interface HsmOptions {
  /** Path of the PKCS#11 module. */
  readonly library: string
  /** NSS's parameters for C_Initialize. */
  readonly libraryParameters?: string
  /** Set while the module is loaded and initialised. */
  readonly environment?: Readonly<Record<string, string>>
  readonly token: TokenSelector
  readonly pin: string
  /**
   * `inline`: cheap operations synchronously, RSA private operations, RSA key pairs, payloads over 1 MiB and searches
   * in threads. `threads`: everything in threads. `auto` (default): `inline`, unless the token is measured to be slow.
   */
  readonly executor?: 'auto' | 'inline' | 'threads'
  /** The most threads for calls, with two sessions each; default 4. Half as many more make RSA key pairs. */
  readonly threads?: number
  /** After this a call in a thread counts as hung; default 10 s, twelve times that for key pairs. */
  readonly callDeadlineMilliseconds?: number
  /** Keeps self-test results and refused PINs between starts. */
  readonly stateDirectory?: string
  readonly log: Logger
  readonly clock: Clock
  readonly metrics?: Metrics
  /**
   * A token with other people's keys: nothing is made in it at opening, every call runs in a thread, and once lost this
   * Hsm stays lost, for its holder to open another.
   */
  readonly foreign?: boolean
  /** A token that must not be logged in to, under any name. */
  readonly forbidden?: TokenIdentity
  /**
   * The process must end, because a call hangs or the token refuses its PIN after it was away. It must kill itself
   * (SIGKILL): process.exit would wait for the thread inside the token, perhaps for ever.
   */
  onFatal(reason: Error): void
}

const bigPayload = 1 << 20

/**
 * The PKCS#11 token as the rest of the server sees it. Operations return plain values where they ran inline and
 * promises where they ran in a thread. They throw HsmRefusal when the token refuses the input, StaleHandle when a
 * handle must be fetched again (before any call, where its epoch shows it), ApiError 503 while the token is lost;
 * anything else is a bug.
 */
export class Hsm implements AsyncDisposable {
  readonly capabilities: Capabilities
  readonly #service: Service
  readonly #options: HsmOptions
  #queue: Promise<unknown> = Promise.resolve()

  private constructor(options: HsmOptions, service: Service, capabilities: Capabilities) {
    this.#options = options
    this.#service = service
    this.capabilities = capabilities
  }

  /**
   * Loads the module, logs in (once; never when that could lock the token), and finds out the token's abilities by
   * self-test.
   * @throws PinRefused; TokenMissing; Error when the module does not load or the token is unusable
   */
  static async open(options: HsmOptions): Promise<Hsm> {
    const { clock, callDeadlineMilliseconds: deadlineMilliseconds = 10_000, library, onFatal } = options
    const threads = new Threads({ library, deadlineMilliseconds, clock, foreign: options.foreign, onFatal })
    let service: Service | undefined
    const user = {
      get busy() {
        return threads.busy
      },
      invalidated: () => service?.invalidated(),
    }
    const link = new Link(options, user)
    try {
      const { module, epoch, token, connection } = link
      const run: Run = (name, ...args) => threads.run(token.slot, epoch, name, args)
      const found = options.foreign ? assumed : await findings(options, module.lib, token, run)
      const wanted = options.foreign ? 'threads' : (options.executor ?? 'auto')
      const threaded = wanted === 'threads' || (wanted === 'auto' && isSlow(connection, found.dialect, clock))
      threads.limits.calls = options.threads ?? 4
      threads.limits.keyPairs = Math.ceil(threads.limits.calls / 2)
      service = new Service(link, threads, threaded ? 'threads' : 'inline', options)
      return new Hsm(options, service, new Capabilities(found))
    } catch (error) {
      await threads[Symbol.asyncDispose]()
      link.close()
      throw error instanceof Failure ? outcome(error) : error
    }
  }

  get token(): TokenInfo {
    return this.#service.link.token
  }

  get executor(): 'inline' | 'threads' {
    return this.#service.executor
  }

  /**
   * For a program that logs in by itself (softhsm/strict-kek), and to compare the PIN of a managed key in this token
   * with ours. It has the PIN, so never log it.
   */
  get credentials(): { library: string; libraryParameters: string | undefined; serial: string; pin: string } {
    const { library, libraryParameters, pin } = this.#options
    return { library, libraryParameters, serial: this.token.serial, pin }
  }

  /** Grows whenever the module is initialised again; no two tokens or modules share a number. */
  get epoch(): number {
    return this.#service.link.epoch
  }

  /** False from the moment the token is lost until it is back and every epoch listener has finished. */
  get healthy(): boolean {
    return this.#service.healthy
  }

  /**
   * Treats the token as lost, because it shows none of the objects that it has shown before: SoftHSM does so for good once
   * its directory was out of reach. @returns the refusal of the caller's operation
   */
  vanished(reason: string): ApiError {
    return this.#service.vanished(reason)
  }

  /** Whether a call is under way in some thread. */
  get busy(): boolean {
    return this.#service.busy
  }

  /** Calls the listener at every new epoch, in the order of subscription. Returns a function that unsubscribes it. */
  onEpoch(listener: EpochListener): () => void {
    return this.#service.onEpoch(listener)
  }

  /** Ciphertext, with the tag under AES-GCM. */
  encrypt(key: Handle, mechanism: Mechanism, plaintext: Uint8Array): MaybePromise<Buffer> {
    const heavy = plaintext.length > bigPayload
    return this.#perform('encrypt', [this.#use(key), mechanism, plaintext], heavy, key)
  }

  decrypt(key: Handle, mechanism: Mechanism, ciphertext: Uint8Array): MaybePromise<Buffer> {
    const heavy = isRsa(mechanism.type) || ciphertext.length > bigPayload
    const forgedTag = mechanism.gcm && this.capabilities.forgedTag
    return this.#perform('decrypt', [this.#use(key), mechanism, ciphertext, forgedTag], heavy, key)
  }

  /** Signs or MACs. `signatureLength` is exact, in bytes. */
  sign(key: Handle, mechanism: Mechanism, message: Uint8Array, signatureLength: number): MaybePromise<Buffer> {
    const heavy = isRsa(mechanism.type) || message.length > bigPayload
    return this.#perform('sign', [this.#use(key), mechanism, message, signatureLength], heavy, key)
  }

  /** The key's blob under the KEK. `mechanism` is a CKM number, as a rule `capabilities.kwp`. */
  wrap(kek: Handle, mechanism: number, key: Handle): MaybePromise<Buffer> {
    return this.#perform('wrap', [this.#use(kek), mechanism, this.#use(key)], false, kek, key)
  }

  /** A session object from a blob. */
  unwrap(kek: Handle, mechanism: number | Mechanism, blob: Uint8Array, template: KeyTemplate): MaybePromise<Handle> {
    const how = typeof mechanism === 'number' ? { type: mechanism } : mechanism
    if (!fitsMechanism(how.type, blob.length)) {
      throw outcome(new Failure('refuse', CKR.WRAPPED_KEY_LEN_RANGE, 'unwrap'))
    }
    const list = spell(template, 'unwrap', this.capabilities.dialect)
    const { epoch } = this
    const made = this.#perform('unwrap', [this.#use(kek), how, blob, list], isRsa(how.type), kek)
    if (made instanceof Promise) return made.then((value) => new Handle(value, epoch, template.token))
    return new Handle(made, epoch, template.token)
  }

  /** Digest of prefix ‖ the key's value ‖ suffix (C_DigestKey); `length` bytes. */
  digestKey(
    mechanism: number,
    prefix: Uint8Array,
    key: Handle,
    length: number,
    suffix: Uint8Array = new Uint8Array(0),
  ): MaybePromise<Buffer> {
    return this.#perform('digestKey', [mechanism, prefix, this.#use(key), suffix, length], false, key)
  }

  random(length: number): MaybePromise<Buffer> {
    return this.#perform('random', [length], length > bigPayload)
  }

  /** Generates a secret key. */
  generateKey(mechanism: number, template: KeyTemplate): Promise<Handle> {
    const list = spell(template, 'generate', this.capabilities.dialect)
    return this.#make(template, () => this.#perform('generateKey', [mechanism, list], false))
  }

  /** Generates a pair. The public key's usages are widened by the counterparts of the private key's. */
  generateKeyPair(
    mechanism: number,
    publicTemplate: KeyTemplate,
    privateTemplate: KeyTemplate,
  ): Promise<{ publicKey: Handle; privateKey: Handle }> {
    const lists = spellPair(publicTemplate, privateTemplate, this.capabilities.dialect)
    // Microseconds for a curve, up to seconds for RSA.
    const heavy = mechanism === CKM.RSA_PKCS_KEY_PAIR_GEN
    return this.#inTurn(publicTemplate.token || privateTemplate.token, async () => {
      const { epoch } = this
      const pair = await this.#perform('generateKeyPair', [mechanism, ...lists], heavy)
      return {
        publicKey: new Handle(pair.publicKey, epoch, publicTemplate.token),
        privateKey: new Handle(pair.privateKey, epoch, privateTemplate.token),
      }
    })
  }

  /** Makes an object from its value (C_CreateObject). */
  create(template: KeyTemplate): Promise<Handle> {
    const list = spell(template, 'create', this.capabilities.dialect)
    return this.#make(template, () => this.#perform('create', [list], false))
  }

  /**
   * Matching objects; looks at every object of the token and of its sessions, so in a thread and never on a hot path.
   * Each call gives new Handles, whose pins are independent of earlier ones.
   */
  async find(template: Partial<KeyTemplate>): Promise<Handle[]> {
    const { epoch } = this
    const objects = await this.#perform('find', [search(template)], true)
    return objects.map((value) => new Handle(value, epoch, template.token ?? true))
  }

  /** The named attributes; undefined for one that the object lacks or does not show. */
  attributes<K extends AttributeName>(
    key: Handle,
    names: readonly K[],
  ): MaybePromise<{ [P in K]: AttributeValues[P] | undefined }> {
    const values = this.#perform('attributes', [this.#use(key), asking(names)], false, key)
    return values instanceof Promise ? values.then((some) => answered(names, some)) : answered(names, values)
  }

  /**
   * Attributes of a private key that was made to be read once; the caller wipes them.
   * @param beside its public key, modifiable, which is not needed any more
   */
  reveal<K extends AttributeName>(
    key: Handle,
    names: readonly K[],
    beside: Handle,
  ): MaybePromise<{ [P in K]: AttributeValues[P] | undefined }> {
    const args = [this.#use(key), asking(names), this.#use(beside)] as const
    const values = this.#perform('reveal', [...args], false, key, beside)
    return values instanceof Promise ? values.then((some) => answered(names, some)) : answered(names, values)
  }

  /** Runs work, identified by its name, that one process of the state directory at a time may run on this token. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    const { stateDirectory } = this.#options
    const file = `${name}-${Buffer.from(this.token.serial).toString('hex')}`
    return stateDirectory === undefined ? work() : aloneMeanwhile(stateDirectory, file, work)
  }

  /**
   * Destroys the object, at once or after the last call that uses it in a thread. An object of an ended epoch or a lost
   * token needs no call.
   */
  destroy(key: Handle): MaybePromise<void> {
    if (key.state !== 'live') return
    const session = !key.persistent
    if (session && (key.epoch !== this.epoch || this.#service.lost)) {
      key.state = 'gone'
      return
    }
    if (key.pins > 0) {
      key.state = 'doomed'
      return
    }
    const value = this.#use(key)
    key.state = 'gone'
    return this.#perform('destroy', [value], false)
  }

  /** Ends threads and sessions. Requests must have been drained: a call inside the token cannot be stopped. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#service[Symbol.asyncDispose]()
  }

  /** The handle's number. The check precedes every call, since an old number may be another key's by now. */
  #use(key: Handle): Buffer {
    this.#service.check()
    if (key.epoch !== this.#service.link.epoch) throw new StaleHandle('the handle is of an earlier epoch')
    if (key.state === 'gone') throw new StaleHandle('the handle was destroyed')
    return key.value
  }

  /** Runs an operation; while a thread works, the handles in `args` are pinned. */
  #perform<N extends Operation>(
    name: N,
    args: Arguments<N>,
    heavy: boolean,
    ...handles: Handle[]
  ): MaybePromise<Result<N>> {
    const result = this.#service.perform(name, args, heavy)
    if (!(result instanceof Promise) || handles.length === 0) return result
    for (const handle of handles) handle.pins++
    return result.finally(() => {
      for (const handle of handles) this.#unpin(handle)
    })
  }

  #unpin(key: Handle): void {
    key.pins--
    if (key.pins > 0 || key.state !== 'doomed') return
    key.state = 'live'
    const destroyed = (async () => this.destroy(key))()
    destroyed.catch((error: unknown) => this.#options.log.warn({ error }, 'an object was left in the HSM'))
  }

  #make(template: KeyTemplate, work: () => MaybePromise<Buffer>): Promise<Handle> {
    return this.#inTurn(template.token, async () => {
      const { epoch } = this
      return new Handle(await work(), epoch, template.token)
    })
  }

  /** Token objects are made one at a time: SoftHSM fails at it from several threads. Session objects need no turn. */
  #inTurn<T>(persistent: boolean | undefined, work: () => Promise<T>): Promise<T> {
    if (!persistent) return work()
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }
}
