import { ConfigError } from '../config/problems.ts'

/** Exit codes of every verb except `status`: 0 done, 1 failed, 2 wrong usage or configuration. */
export const exitFailed = 1
export const exitUsage = 2

/**
 * Prints the reason of a command's failure on standard error, without a stack: the text is for the operator. @returns
 * the exit code
 */
export function explainFailure(error: unknown): number {
  if (error instanceof ConfigError) {
    console.error('the configuration is wrong:')
    for (const problem of error.problems) console.error(`  ${problem}`)
    return exitUsage
  }
  for (let at = error, depth = 0; at !== undefined && depth < 8; depth++) {
    console.error(`${depth === 0 ? 'strongroom: ' : '  because: '}${sentence(at)}`)
    at = at instanceof Error ? at.cause : undefined
  }
  return exitFailed
}

/** Node's error for several refused connections has no message of its own. */
function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || (error instanceof AggregateError ? error.errors.map(sentence).join('; ') : error.name)
}
