import type { Clock } from '../../clock.ts'
import { clearErrorQueue } from '../../crypto/errorqueue.ts'
import type { Cryptoki } from '../binding.ts'
import { CKF } from '../constants.ts'
import { ckrOf, Failure, type Fate, fateOf } from '../faults.ts'
import { type Arguments, leavesObject, type Operation, operations, type Port, type Result } from './operations.ts'

const attempts = 4
/**
 * For so long after the token itself was asked, a forged tag is believed without asking: SoftHSM would read its files.
 */
const believedMilliseconds = 50

/** The same functions, typed so that a name keeps its own arguments and result. */
const table: { [N in Operation]: (port: Port, session: Buffer, ...args: Arguments<N>) => Result<N> } = operations

/**
 * The sessions of one thread on one token, and the inline executor. The keeper holds all session objects made here:
 * they die with their session, so it is opened once and never closed or used for operations of several calls. It is
 * also the idle session that must always be open (SoftHSM 2.6.1 races when the last one closes). Beside it there is one
 * session for operations, lent to one at a time; a failed call discards it, since tokens disagree on its state then.
 * Only after a forged GCM tag it is kept, if the self-test has shown that it stays usable.
 */
export class Connection implements Port {
  readonly lib: Cryptoki
  readonly keeper: Buffer
  readonly scratch = Buffer.allocUnsafeSlow(16384)
  readonly #slot: Uint8Array
  readonly #clock: Pick<Clock, 'monotonic'>
  #spare: Buffer | undefined
  /** When the token itself was last asked. */
  #askedAt = Number.NEGATIVE_INFINITY

  /** @throws what pkcs11js throws when no session can be opened */
  constructor(lib: Cryptoki, slot: Uint8Array, clock: Pick<Clock, 'monotonic'>) {
    this.lib = lib
    this.#slot = slot
    this.#clock = clock
    this.keeper = this.#open()
  }

  /**
   * Runs an operation synchronously.
   * @throws Failure whose fate is settled: never `doubt`
   */
  run<N extends Operation>(name: N, args: Arguments<N>): Result<N> {
    let attempt = 0
    for (;;) {
      const session = this.#spare ?? this.#open(name)
      this.#spare = undefined
      try {
        const result = table[name](this, session, ...args)
        this.#spare = session
        return result
      } catch (error) {
        clearErrorQueue()
        const forged = isForged(error, name, args)
        if (forged) this.#spare = session
        else this.#discard(session)
        attempt++
        const failure = this.#failureOf(error, name, forged)
        const again = failure.fate === 'session' || (failure.fate === 'retry' && attempt === 1 && !leavesObject(name))
        if (!again || attempt === attempts) throw failure
      }
    }
  }

  /** Closes both sessions; their objects go with them. Only when nothing can be in flight any more. */
  close(): void {
    if (this.#spare !== undefined) this.#discard(this.#spare)
    this.#discard(this.keeper)
  }

  #open(name = 'open session'): Buffer {
    try {
      return this.lib.C_OpenSession(this.#slot, CKF.SERIAL_SESSION | CKF.RW_SESSION)
    } catch (error) {
      const code = ckrOf(error)
      if (code === undefined) throw error
      throw new Failure(fateOf(code) === 'retry' ? 'retry' : 'lost', code, name)
    }
  }

  #discard(session: Buffer): void {
    try {
      this.lib.C_CloseSession(session)
    } catch {
      // It was invalid already.
    }
  }

  #failureOf(error: unknown, name: Operation, forged: boolean): Failure {
    const code = ckrOf(error)
    if (code === undefined) throw error
    const fate = fateOf(code)
    return new Failure(fate === 'doubt' || fate === 'session' ? this.#confirmed(fate, forged) : fate, code, name)
  }

  /** Asks the token whether it is there and still has our keeper, without which every session object is gone. */
  #confirmed(fate: Fate, forged: boolean): Fate {
    try {
      this.#spare ??= this.#open()
      this.lib.C_GetSessionInfo(this.keeper)
      const now = this.#clock.monotonic()
      if (!forged || now - this.#askedAt > believedMilliseconds) {
        this.lib.C_GetTokenInfo(this.#slot)
        this.#askedAt = now
      }
    } catch (error) {
      return error instanceof Failure ? error.fate : 'lost'
    }
    return fate === 'doubt' ? 'refuse' : fate
  }
}

/** Whether the call failed as it does for a forged tag, and its caller knows that the session stays as it was. */
const isForged = (error: unknown, name: Operation, [, , , forgedTag]: readonly unknown[]): boolean =>
  name === 'decrypt' && forgedTag !== undefined && ckrOf(error) === forgedTag
