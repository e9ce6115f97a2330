/**
 * Runs a call of node:crypto whose key is given as bytes or inside an object. Node 24 detects that such a value is not
 * a KeyObject by two native calls that throw, and the stack traces of these errors, which nobody sees, cost 10 µs: more
 * than most of the cryptography. Errors thrown by `work` itself have no stack either.
 */
export function withoutStackTraces<T>(work: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return work()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
