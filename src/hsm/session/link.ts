import { type Clock, systemClock } from '../../clock.ts'
import { clearErrorQueue } from '../../crypto/errorqueue.ts'
import { nextEpoch } from '../handle.ts'
import { type Environment, Module, type ModuleUser } from '../module.ts'
import { describe, findToken, type TokenInfo, type TokenSelector } from '../slots.ts'
import { Connection } from './connection.ts'
import { type LoginOptions, login } from './login.ts'

export interface LinkOptions extends LoginOptions {
  readonly library: string
  readonly libraryParameters?: string | undefined
  /** Set while the module is loaded and initialised. */
  readonly environment?: Environment | undefined
  readonly token: TokenSelector
  readonly pin: string
  /** Default: the system's. */
  readonly clock?: Clock
  /** A token that this link must not log in to, under any name: its PIN must not be guessed here. */
  readonly forbidden?: TokenIdentity | undefined
}

/** Identifies a token in any slot and module that shows it. */
export interface TokenIdentity {
  readonly serial: string
  readonly label: string
}

/** After each of these a token that is not seen is looked for again when a process opens it. */
const pausesMilliseconds = [20, 50, 100, 200, 400]

/** A module, the token in it, and this process's login there, all to be made again after the token was away. */
export class Link {
  readonly module: Module
  /** The module's, when this link was made or renewed. */
  generation = 0
  epoch = 0
  token: TokenInfo
  connection: Connection
  readonly #options: LinkOptions
  readonly #user: ModuleUser

  /**
   * Loads the module, finds the token and logs in.
   * @throws PinRefused; Error when there is no such token, or several
   */
  constructor(options: LinkOptions, user: ModuleUser) {
    this.#options = options
    this.#user = user
    this.module = Module.acquire(options.library, options.libraryParameters, user, options.environment)
    try {
      ;({ token: this.token, connection: this.connection } = this.#connect(options.token, pausesMilliseconds))
    } catch (error) {
      this.module.release(user)
      throw error
    }
  }

  /**
   * Initialises the module again and logs in to the same token, by its serial number. All handles are void afterwards.
   * @returns false, having done nothing, while calls are under way in the module
   * @throws PinRefused: then it must not be tried again; any other error: the token is not back yet
   */
  renew(): boolean {
    if (this.module.generation === this.generation && !this.module.renew(this.#user)) return false
    const { label, serial } = this.token
    ;({ token: this.token, connection: this.connection } = this.#connect({ label, serial }))
    return true
  }

  close(): void {
    this.connection.close()
    this.module.release(this.#user)
  }

  #connect(selector: TokenSelector, pauses: readonly number[] = []): { token: TokenInfo; connection: Connection } {
    const { lib } = this.module
    this.generation = this.module.generation
    const token = findToken(lib, selector) ?? this.#lookAgain(selector, pauses)
    if (token === undefined) throw new TokenMissing(`${describe(selector)} is not there`)
    const { forbidden } = this.#options
    if (forbidden?.serial === token.serial && forbidden.label === token.label) {
      throw new TokenForbidden(`${describe(selector)} is the token that holds the server's own keys`)
    }
    const connection = new Connection(lib, token.slot, this.#options.clock ?? systemClock)
    try {
      login(lib, connection.keeper, token, this.#options.pin, this.#options)
    } catch (error) {
      clearErrorQueue()
      connection.close()
      throw error
    }
    this.epoch = nextEpoch()
    return { token, connection }
  }

  /**
   * SoftHSM rewrites the file of a token at every login, and a process that initialises the module meanwhile does not
   * see the token.
   */
  #lookAgain(selector: TokenSelector, pauses: readonly number[]): TokenInfo | undefined {
    for (const pause of pauses) {
      if (!this.module.isAlone(this.#user)) return undefined
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause)
      if (!this.module.renew(this.#user)) return undefined
      this.generation = this.module.generation
      const token = findToken(this.module.lib, selector)
      if (token) return token
    }
    return undefined
  }
}

/** The token is the one that must not be opened. */
export class TokenForbidden extends Error {}

/** No slot holds the token that was asked for. */
export class TokenMissing extends Error {}
