import type { FailureKind } from './messages.ts'

/**
 * Why a worker could not start or go on, found anywhere in the chain of causes. The error of hsm/ is told by its name:
 * the stand-in runs this file too and must not depend on hsm/.
 */
export function failureKind(error: unknown): FailureKind {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at.name === 'PinRefused') return 'pin'
  }
  return 'other'
}
