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

/** Which token of which library. */
export interface Place {
  readonly library: string
  readonly slot: number | null
  readonly tokenLabel: string | null
}

export interface GuestsOptions {
  readonly libraries: readonly Library[]
  /** The token of our own keys, and whether managed keys may lie in it. */
  readonly own: Hsm
  readonly ownAllowed: boolean
  readonly stateDirectory: string
  readonly log: Logger
  readonly clock: Clock
  /** CKA_IDs of which the token that has them holds our keys, whatever it calls itself. */
  ownIds(): Promise<readonly Buffer[]>
  /** The process is damaged and must end. */
  onFatal(reason: Error): void
}

interface Guest {
  hsm: Hsm | undefined
  /** SHA-256 of the PIN with which the token has let us in. */
  pin: Buffer
  /** A call has hung; while it still does, nothing of this token may be tried in this process. */
  stuck: boolean
  /** When it was last found away; monotonic milliseconds. */
  awaySince: number | undefined
  turn: Promise<unknown>
}

const pauseMilliseconds = 1000

/**
 * The tokens that hold managed keys, opened when they are first needed. Before a login in this process a child tries it: the
 * PIN is then seen by the token itself, also where we are logged in and C_Login would believe any, and a token that hangs
 * holds nobody up. A token that is lost fails its own keys alone, and is tried again at the next use.
 */
export class Guests implements AsyncDisposable {
  readonly #options: GuestsOptions
  readonly #guests = new Map<string, Guest>()

  constructor(options: GuestsOptions) {
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
  peek(place: Place): Hsm | undefined {
    const hsm = this.#guests.get(keyOf(place))?.hsm
    return hsm?.healthy ? hsm : undefined
  }

  /**
   * Logs in to the token, unless that was done with this PIN.
   * @throws PinRefused; ApiError 503 while the token is away, 400 when it is the one of our own keys
   */
  open(place: Place, pin: string): MaybePromise<Hsm> {
    const library = this.library(place.library)
    const guest = this.#guest(place)
    if (guest.hsm?.healthy && timingSafeEqual(guest.pin, hashOf(pin))) return guest.hsm
    const opened = guest.turn.then(() => this.#enter(guest, library, place, pin))
    guest.turn = opened.catch(() => undefined)
    return opened
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const guests = [...this.#guests.values()]
    this.#guests.clear()
    await Promise.all(guests.map((guest) => this.#leave(guest)))
  }

  #guest(place: Place): Guest {
    const key = keyOf(place)
    const known = this.#guests.get(key)
    if (known !== undefined) return known
    const guest: Guest = {
      ...{ hsm: undefined, pin: Buffer.alloc(32), stuck: false, awaySince: undefined },
      turn: Promise.resolve(),
    }
    this.#guests.set(key, guest)
    return guest
  }

  async #enter(guest: Guest, library: Library, place: Place, pin: string): Promise<Hsm> {
    const { own, stateDirectory, clock, onFatal } = this.#options
    if (guest.hsm?.healthy && timingSafeEqual(guest.pin, hashOf(pin))) return guest.hsm
    if (guest.awaySince !== undefined && clock.monotonic() - guest.awaySince < pauseMilliseconds) throw away(place)
    const { serial, label } = own.token
    const trial = {
      library: library.library,
      ...(library.libraryParameters === undefined ? {} : { libraryParameters: library.libraryParameters }),
      ...{ token: selectorOf(place), pin, forbidden: { serial, label }, stateDirectory },
    }
    const tried = await tryLogin(trial, library.environment)
    if (tried === 'forbidden') return this.#own(guest, pin)
    if (tried !== 'good') {
      guest.awaySince = tried === 'wrongPin' ? undefined : clock.monotonic()
      throw refusal(tried, place)
    }
    guest.awaySince = undefined
    if (guest.stuck && guest.hsm?.busy) {
      onFatal(new Error(`the token of library ${library.name} answers again, but not in this process`))
      throw away(place)
    }
    if (!guest.hsm?.healthy) await this.#connect(guest, library, place, pin)
    guest.pin = hashOf(pin)
    return guest.hsm ?? fail(place)
  }

  /** Our own token under another name, or by another path to it. Its PIN is compared, never tried. */
  #own(guest: Guest, pin: string): Hsm {
    const { own, ownAllowed } = this.#options
    if (!ownAllowed) {
      throw badRequest(
        'this token holds the server’s own keys; managed keys lie in it only where the configuration says pkcs11.managedKeys: true',
      )
    }
    if (!timingSafeEqual(hashOf(pin), hashOf(own.credentials.pin))) throw new PinRefused('incorrect', 'wrong PIN')
    guest.hsm = own
    guest.pin = hashOf(pin)
    return own
  }

  async #connect(guest: Guest, library: Library, place: Place, pin: string): Promise<void> {
    const { own, stateDirectory, log, clock } = this.#options
    await this.#leave(guest)
    const { serial, label } = own.token
    const { threads, environment, libraryParameters, callDeadlineMilliseconds } = library
    const hsm = await Hsm.open({
      ...{ guest: true, library: library.library, environment, threads, callDeadlineMilliseconds },
      ...(libraryParameters === undefined ? {} : { libraryParameters }),
      ...{ token: selectorOf(place), forbidden: { serial, label }, pin, stateDirectory, log, clock },
      onFatal: (reason) => {
        guest.stuck = true
        log.error({ error: reason.message, library: library.name }, 'a token of managed keys is given up')
      },
    }).catch((error: unknown) => {
      // SoftHSM shows a process the tokens that it began with; the process that tried the PIN was a new one.
      if (!(error instanceof TokenMissing)) throw error
      throw unavailable(`${named(place)} was made after this server began, which sees it after a restart`)
    })
    for (const id of await this.#options.ownIds()) {
      if ((await hsm.find({ id, token: true })).length === 0) continue
      await hsm[Symbol.asyncDispose]()
      throw badRequest('this token holds keys of the server itself, under another name: no managed key may lie in it')
    }
    guest.hsm = hsm
  }

  /** A thread that hangs inside the token cannot be ended: it is left behind. */
  async #leave(guest: Guest): Promise<void> {
    const { hsm } = guest
    guest.hsm = undefined
    if (hsm === undefined || hsm === this.#options.own) return
    const hangs = guest.stuck && hsm.busy
    guest.stuck = false
    const closed = hsm[Symbol.asyncDispose]()
    if (hangs) closed.catch(() => {})
    else await closed
  }
}

const keyOf = ({ library, slot, tokenLabel }: Place): string => JSON.stringify([library, slot, tokenLabel])

const selectorOf = ({ slot, tokenLabel }: Place) => ({
  ...(slot === null ? {} : { slot }),
  ...(tokenLabel === null ? {} : { label: tokenLabel }),
})

/** Compared instead of PINs, whose length would show. */
const hashOf = (pin: string): Buffer => createHash('sha256').update(pin).digest()

const named = (place: Place): string => {
  const parts = [place.tokenLabel !== null && `"${place.tokenLabel}"`, place.slot !== null && `in slot ${place.slot}`]
  return `the token ${parts.filter(Boolean).join(' ')} of library ${place.library}`
}

const away = (place: Place): ApiError => unavailable(`${named(place)} is not available`)

function fail(place: Place): never {
  throw away(place)
}

function refusal(tried: Exclude<Tried, 'good' | 'forbidden'>, place: Place): Error {
  if (tried === 'wrongPin') return new PinRefused('incorrect', `${named(place)} refused the PIN`)
  if (tried === 'heldBack') {
    return new PinRefused(
      'locked',
      `${named(place)} has locked its PIN, or would at one more wrong one: nothing was tried`,
    )
  }
  return away(place)
}
