import { createInterface } from 'node:readline'
import { PinRefused } from '../faults.ts'
import { Link, TokenForbidden, type TokenIdentity, TokenMissing } from '../session/link.ts'
import type { TokenSelector } from '../slots.ts'

/** The line that the script reads from standard input. */
export interface Trial {
  readonly library: string
  readonly libraryParameters?: string
  readonly token: TokenSelector
  readonly pin: string
  /** The token that must not be logged in to, under any name. */
  readonly forbidden?: TokenIdentity
  /** Try although the token warns, and although this PIN was refused before. */
  readonly force?: boolean
  /** Where refused PINs are remembered; the same directory as in HsmOptions. */
  readonly stateDirectory?: string
}

/**
 * Exit statuses. `heldBack`: nothing was tried, since the token has locked its PIN or would after one more wrong one;
 * `forbidden`: nothing was tried, since this token must not be logged in to.
 */
export const trialStatus = { good: 0, failed: 1, wrongPin: 3, heldBack: 4, tokenMissing: 5, forbidden: 6 } as const

/** Tries one PIN, at most once. Writes only a sentence of ours to standard error. */
function tryPin(trial: Trial): number {
  const user = { busy: false, invalidated: () => {} }
  try {
    new Link(trial, user).close()
    return trialStatus.good
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : 'failed'}\n`)
    if (error instanceof PinRefused) return error.reason === 'locked' ? trialStatus.heldBack : trialStatus.wrongPin
    if (error instanceof TokenForbidden) return trialStatus.forbidden
    return error instanceof TokenMissing ? trialStatus.tokenMissing : trialStatus.failed
  }
}

/**
 * Run as a script, it tries a PIN in a process of its own, which its parent kills if the token hangs. One JSON line
 * (Trial) on standard input; the answer is the exit status.
 */
if (import.meta.main) {
  for await (const line of createInterface(process.stdin)) {
    let trial: Trial
    try {
      trial = JSON.parse(line)
    } catch {
      // Not the parser's message, which quotes the line, and with it the PIN.
      process.stderr.write('standard input is not a line of JSON\n')
      process.exit(trialStatus.failed)
    }
    process.exit(tryPin(trial))
  }
  process.exit(trialStatus.failed)
}
