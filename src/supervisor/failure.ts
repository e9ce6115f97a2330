import type { FailureKind } from './messages.ts'

/**
 * Classifies an error that ended a worker, anywhere in its chain of causes. The error of hsm/ is recognised by its
 * name: the stand-in runs this file too and must not depend on hsm/.
 */
export function failureKind(error: unknown): FailureKind {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at.name === 'PinRefused') return 'pin'
  }
  return 'other'
}
