/**
 * Runs a call of node:crypto that is given a key as bytes, or inside an object. Node 24 finds out that such a thing is no
 * KeyObject by two native calls that throw, and the stack traces of these errors, which nobody sees, cost 10 µs: more than most
 * of the cryptography. What `work` throws itself has none either.
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
