import { type Logger as Pino, pino } from 'pino'
import { type Lines, standardError } from './log/lines.ts'
import { scrub } from './log/scrub.ts'

/** Without `child`: pino does not scrub the bindings of a child. */
export type Logger = Pick<Pino, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'isLevelEnabled'>

/**
 * The process log: one JSON object per line on standard error (standard output belongs to the command's own answer).
 * Secrets are scrubbed from every line.
 * @param level pino's level names; `silent` turns it off
 */
export const createLog = (level: string, bindings: Record<string, unknown> = {}): Logger =>
  createLogTo(standardError(), level, bindings)

/** As createLog, written elsewhere. */
export const createLogTo = (destination: Lines, level: string, bindings: Record<string, unknown> = {}): Logger =>
  pino(
    {
      level,
      base: { pid: process.pid, ...bindings },
      formatters: { log: scrub, bindings: scrub },
      // pino's own serializer would add every property of an error.
      serializers: { err: (error: unknown) => error },
    },
    destination,
  )
