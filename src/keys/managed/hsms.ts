import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { type ApiError, badRequest, unavailable } from '../../errors.ts'
import { PinRefused } from '../../hsm/faults.ts'
import { Hsm } from '../../hsm/hsm.ts'
import { TokenMissing } from '../../hsm/session/link.ts'
import { type Tried, tryLogin } from '../../hsm/trial/tryout.ts'
import type { Logger } from '../../log.ts'
import type { MaybePromise } from '../../route.ts'

/** A PKCS#11 module of the configuration whose tokens managed keys may lie in. */
export interface Library {
  /** Lower case. */
  readonly name: string
  readonly library: string
  readonly libraryParameters?: string | undefined
  /** Set while the module is loaded and initialised. */
  readonly environment: Readonly<Record<string, string>>
  readonly threads: number
  readonly callDeadlineMilliseconds: number
}

/** A token of a library. */
export interface TokenAddress {
  readonly library: string
  readonly slot: number | null
  readonly tokenLabel: string | null
}

export interface ManagedHsmsOptions {
  readonly libraries: readonly Library[]
  /** The token of our own keys, and whether managed keys may lie in it. */
  readonly own: Hsm
  readonly ownAllowed: boolean
  /** Wrong PINs that callers may name for the token of our own keys. */
  readonly tries: { take(): void; giveBack(): void }
  readonly stateDirectory: string
  readonly log: Logger
  readonly clock: Clock
  /** CKA_IDs of our keys: a token that has one of them is ours, whatever it calls itself. */
  ownIds(): Promise<readonly Buffer[]>
  /** The process is damaged and must end. */
  onFatal(reason: Error): void
}

interface ManagedHsm {
  hsm: Hsm | undefined
  /** SHA-256 of the PIN that the token has accepted. */
  pin: Buffer
  /** A call has hung; while it still does, nothing of this token may be tried in this process. */
  stuck: boolean
  /** When it was last found away; monotonic milliseconds. */
  awaySince: number | undefined
  turn: Promise<unknown>
}

interface Login {
  readonly pin: string
  /** Named by a caller; otherwise it was stored, after it had been accepted. */
  readonly guess: boolean
}

const pauseMilliseconds = 1000

const closed = (): ApiError => unavailable('the tokens of managed keys are closed')

/**
 * The tokens that hold managed keys, opened when they are first needed. Before a login in this process a child tries
 * it: the token itself then checks the PIN, even where we are logged in and C_Login would accept any, and a hanging
 * token blocks nothing else. A lost token fails only its own keys, and is tried again at the next use.
 */
export class ManagedHsms implements AsyncDisposable {
  readonly #options: ManagedHsmsOptions
  readonly #entries = new Map<string, ManagedHsm>()
  #closed = false

  constructor(options: ManagedHsmsOptions) {
    this.#options = options
  }

  /** @throws ApiError 400 when the configuration names no such library */
  library(name: string): Library {
    const { libraries } = this.#options
    const found = libraries.find((library) => library.name === name)
    if (found !== undefined) return found
    const known = libraries.map((library) => library.name).join(', ') || 'none'
    throw badRequest(`library "${name}" is not in the server's configuration (pkcs11Libraries has ${known})`)
  }

  /** The token if it is open and answers; synchronous, for hot paths. */
  peek(address: TokenAddress): Hsm | undefined {
    const hsm = this.#entries.get(keyOf(address))?.hsm
    return hsm?.healthy ? hsm : undefined
  }

  /**
   * Logs in to the token, unless it is open with this PIN.
   * @throws PinRefused; ApiError 503 while the token is away or after the end, 400 when it is the one of our own keys
   */
  open(address: TokenAddress, pin: string): MaybePromise<Hsm> {
    return this.#open(address, { pin, guess: false })
  }

  /**
   * As `open`, with a PIN that a caller has named and may be guessing.
   * @throws as `open`; ApiError 429 after too many wrong PINs of the token of our own keys
   */
  admit(address: TokenAddress, pin: string): MaybePromise<Hsm> {
    return this.#open(address, { pin, guess: true })
  }

  #open(address: TokenAddress, login: Login): MaybePromise<Hsm> {
    this.#requireOpen()
    const library = this.library(address.library)
    const entry = this.#entryOf(address)
    const open = this.#known(entry, login)
    if (open !== undefined) return open
    const opened = entry.turn.then(() => this.#enter(entry, library, address, login))
    entry.turn = opened.catch(() => undefined)
    return opened
  }

  /** Waits for openings under way, whose children may be logged in; none of them logs in here any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await Promise.all(
      [...this.#entries.values()].map(async (entry) => {
        await this.#leave(entry)
        await entry.turn
        // An opening whose call hangs leaves its token in the entry.
        await this.#leave(entry)
      }),
    )
  }

  #requireOpen(): void {
    if (this.#closed) throw closed()
  }

  #entryOf(address: TokenAddress): ManagedHsm {
    const key = keyOf(address)
    const known = this.#entries.get(key)
    if (known !== undefined) return known
    const entry: ManagedHsm = {
      ...{ hsm: undefined, pin: Buffer.alloc(32), stuck: false, awaySince: undefined },
      turn: Promise.resolve(),
    }
    this.#entries.set(key, entry)
    return entry
  }

  /** The token of the entry if it is open with this PIN. For a guess our own is not: every one takes a try. */
  #known({ hsm, pin: accepted }: ManagedHsm, { pin, guess }: Login): Hsm | undefined {
    if (!hsm?.healthy || (guess && hsm === this.#options.own)) return undefined
    return timingSafeEqual(accepted, hashOf(pin)) ? hsm : undefined
  }

  async #enter(entry: ManagedHsm, library: Library, address: TokenAddress, login: Login): Promise<Hsm> {
    const { pin } = login
    const { own, stateDirectory, clock, onFatal } = this.#options
    this.#requireOpen()
    const open = this.#known(entry, login)
    if (open !== undefined) return open
    if (entry.awaySince !== undefined && clock.monotonic() - entry.awaySince < pauseMilliseconds) throw away(address)
    const { serial, label } = own.token
    const trial = {
      library: library.library,
      ...(library.libraryParameters === undefined ? {} : { libraryParameters: library.libraryParameters }),
      ...{ token: selectorOf(address), pin, forbidden: { serial, label }, stateDirectory },
    }
    const tried = await tryLogin(trial, library.environment)
    this.#requireOpen()
    if (tried === 'forbidden') return this.#own(entry, login)
    if (tried !== 'good') {
      entry.awaySince = tried === 'wrongPin' ? undefined : clock.monotonic()
      throw refusal(tried, address)
    }
    entry.awaySince = undefined
    if (entry.stuck && entry.hsm?.busy) {
      onFatal(new Error(`the token of library ${library.name} answers again, but not in this process`))
      throw away(address)
    }
    if (!entry.hsm?.healthy) await this.#connect(entry, library, address, pin)
    entry.pin = hashOf(pin)
    return entry.hsm ?? fail(address)
  }

  /** Our own token under another name, or by another path to it. Its PIN is compared, never tried. */
  #own(entry: ManagedHsm, { pin, guess }: Login): Hsm {
    const { own, ownAllowed, tries } = this.#options
    if (!ownAllowed) {
      throw badRequest(
        'this token holds the server’s own keys; managed keys lie in it only where the configuration says pkcs11.managedKeys: true',
      )
    }
    // Before the comparison: after too many wrong ones not even the right one may be told.
    if (guess) tries.take()
    if (!timingSafeEqual(hashOf(pin), hashOf(own.credentials.pin))) throw new PinRefused('incorrect', 'wrong PIN')
    if (guess) tries.giveBack()
    entry.hsm = own
    entry.pin = hashOf(pin)
    return own
  }

  async #connect(entry: ManagedHsm, library: Library, address: TokenAddress, pin: string): Promise<void> {
    const { own, stateDirectory, log, clock } = this.#options
    await this.#leave(entry)
    this.#requireOpen()
    const { serial, label } = own.token
    const { threads, environment, libraryParameters, callDeadlineMilliseconds } = library
    const hsm = await Hsm.open({
      ...{ foreign: true, library: library.library, environment, threads, callDeadlineMilliseconds },
      ...(libraryParameters === undefined ? {} : { libraryParameters }),
      ...{ token: selectorOf(address), forbidden: { serial, label }, pin, stateDirectory, log, clock },
      onFatal: (reason) => {
        entry.stuck = true
        log.error({ error: reason.message, library: library.name }, 'a token of managed keys is given up')
      },
    }).catch((error: unknown) => {
      // SoftHSM shows a process only the tokens that existed at its start; the child that tried the PIN was newer.
      if (!(error instanceof TokenMissing)) throw error
      throw unavailable(`${named(address)} was made after this server began, which sees it after a restart`)
    })
    try {
      await this.#requireForeign(hsm)
      this.#requireOpen()
    } catch (error) {
      // While its call hangs, the next opening must know of it.
      if (entry.stuck && hsm.busy) entry.hsm = hsm
      else await hsm[Symbol.asyncDispose]()
      throw error
    }
    entry.hsm = hsm
  }

  /** @throws ApiError 400 when the token holds keys of our own */
  async #requireForeign(hsm: Hsm): Promise<void> {
    for (const id of await this.#options.ownIds()) {
      if ((await hsm.find({ id, token: true })).length === 0) continue
      throw badRequest('this token holds keys of the server itself, under another name: no managed key may lie in it')
    }
  }

  /** A thread that hangs inside the token cannot be ended: it is left behind. */
  async #leave(entry: ManagedHsm): Promise<void> {
    const { hsm } = entry
    entry.hsm = undefined
    if (hsm === undefined || hsm === this.#options.own) return
    const hangs = entry.stuck && hsm.busy
    entry.stuck = false
    const closed = hsm[Symbol.asyncDispose]()
    if (hangs) closed.catch(() => {})
    else await closed
  }
}

const keyOf = ({ library, slot, tokenLabel }: TokenAddress): string => JSON.stringify([library, slot, tokenLabel])

const selectorOf = ({ slot, tokenLabel }: TokenAddress) => ({
  ...(slot === null ? {} : { slot }),
  ...(tokenLabel === null ? {} : { label: tokenLabel }),
})

/** Compared instead of PINs, whose length would show. */
const hashOf = (pin: string): Buffer => createHash('sha256').update(pin).digest()

const named = (address: TokenAddress): string => {
  const parts = [
    address.tokenLabel !== null && `"${address.tokenLabel}"`,
    address.slot !== null && `in slot ${address.slot}`,
  ]
  return `the token ${parts.filter(Boolean).join(' ')} of library ${address.library}`
}

const away = (address: TokenAddress): ApiError => unavailable(`${named(address)} is not available`)

function fail(address: TokenAddress): never {
  throw away(address)
}

function refusal(tried: Exclude<Tried, 'good' | 'forbidden'>, address: TokenAddress): Error {
  if (tried === 'wrongPin') return new PinRefused('incorrect', `${named(address)} refused the PIN`)
  if (tried === 'heldBack') {
    return new PinRefused(
      'locked',
      `${named(address)} has locked its PIN, or would at one more wrong one: nothing was tried`,
    )
  }
  return away(address)
}
