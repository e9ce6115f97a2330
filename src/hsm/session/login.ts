import { randomBytes, scryptSync } from 'node:crypto'
import { join } from 'node:path'
import { alone } from '../../turns/alone.ts'
import type { Cryptoki } from '../binding.ts'
import { CKF, CKR, CKU_USER } from '../constants.ts'
import { ckrOf, PinRefused } from '../faults.ts'
import type { TokenInfo } from '../slots.ts'
import { readState, writeState } from '../state.ts'

export interface LoginOptions {
  /** Where refused PINs are remembered, so that no restart tries one twice. */
  readonly stateDirectory?: string | undefined
  /** An operator insists: neither a remembered refusal nor the token's warning flags prevent the attempt. */
  readonly force?: boolean
}

/** Errors about the PIN itself; all others are faults of another kind. */
const pinErrors = new Set<number>([
  CKR.PIN_INCORRECT,
  CKR.PIN_INVALID,
  CKR.PIN_LEN_RANGE,
  CKR.PIN_EXPIRED,
  CKR.PIN_LOCKED,
  CKR.USER_PIN_NOT_INITIALIZED,
])

/**
 * Logs the process in to a token, once: HSMs erase themselves after a few wrong PINs. Nothing is tried when the token
 * says that one more wrong PIN would be the last, or when this PIN was refused before. Processes try one at a time
 * (workers that lost their token find it again at the same moment), so that the others learn of a refusal.
 * @throws PinRefused, or what pkcs11js throws
 */
export function login(lib: Cryptoki, session: Buffer, token: TokenInfo, pin: string, options: LoginOptions): void {
  const { stateDirectory } = options
  const attempt = () => tryOnce(lib, session, token, pin, options)
  if (stateDirectory === undefined) attempt()
  else alone(stateDirectory, 'login', attempt)
}

function tryOnce(lib: Cryptoki, session: Buffer, token: TokenInfo, pin: string, options: LoginOptions): void {
  const memory = options.stateDirectory === undefined ? undefined : refusedPins(options.stateDirectory, token)
  if (!options.force) {
    if (token.flags & CKF.USER_PIN_LOCKED) throw new PinRefused('locked', 'the token has locked its PIN')
    if (token.flags & CKF.USER_PIN_FINAL_TRY) {
      throw new PinRefused('locked', 'the token would lock itself at one more wrong PIN; nothing was tried')
    }
    if (memory?.has(pin)) throw new PinRefused('incorrect', 'the token refused this PIN before; nothing was tried')
  }
  try {
    lib.C_Login(session, CKU_USER, pin)
  } catch (error) {
    const code = ckrOf(error)
    if (code === CKR.USER_ALREADY_LOGGED_IN) return
    if (code === undefined || !pinErrors.has(code)) throw error
    const locked = code === CKR.PIN_LOCKED
    const text = locked ? 'the token has locked its PIN' : 'wrong PIN'
    throw new PinRefused(locked ? 'locked' : 'incorrect', text + (memory?.remember(pin) ?? ''))
  }
  memory?.forget()
}

interface Refused {
  readonly salt: string
  readonly hash: string
}

/** What this process could not store: a full disk must not make it try a wrong PIN again and again. */
const unstored = new Map<string, Refused>()

/** The last PIN that a token refused, salted and hashed, so that a new PIN is tried and the old one is not. */
function refusedPins(directory: string, token: TokenInfo) {
  const name = `refused-pin-${Buffer.from(`${token.serial}/${token.label}`).toString('hex')}.json`
  const path = join(directory, name)
  const hash = (pin: string, salt: string): string => scryptSync(pin, Buffer.from(salt, 'hex'), 32).toString('hex')
  const recall = () => readState(directory, name) as Refused | null | undefined
  return {
    has(pin: string): boolean {
      return [unstored.get(path), recall()].some((refused) => refused && hash(pin, refused.salt) === refused.hash)
    },
    /**
     * @returns what to add to the refusal's text: only an error that is a refusal keeps the PIN from being tried again
     */
    remember(pin: string): string {
      const salt = randomBytes(16).toString('hex')
      const refused = { salt, hash: hash(pin, salt) }
      try {
        writeState(directory, name, refused)
        return ''
      } catch (error) {
        unstored.set(path, refused)
        return `, which could not be remembered for the next start: ${error instanceof Error ? error.message : error}`
      }
    },
    forget(): void {
      unstored.delete(path)
      if (recall() != null) writeState(directory, name, null)
    },
  }
}
