import { type Logger, pino } from 'pino'

export type { Logger }

/** Field names that never appear in clear in a log line, whatever object they come in. */
const secrets = ['pin', 'token', 'client_token', 'plaintext', 'secret', 'password', 'key', 'authorization']

/**
 * The process log: one JSON object per line on standard error (standard output belongs to the command's own answer).
 * @param level pino's level names; `silent` turns it off
 */
export function createLog(level: string, bindings: Record<string, unknown> = {}): Logger {
  const redact = {
    paths: secrets.flatMap((name) => [name, `*.${name}`, `headers["x-vault-${name}"]`]),
    censor: '[redacted]',
  }
  return pino({ level, base: { pid: process.pid, ...bindings }, redact }, pino.destination({ dest: 2, sync: true }))
}
