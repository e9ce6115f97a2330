import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Cryptoki } from './binding.ts'
import type { Findings } from './capabilities.ts'
import type { Run } from './selftest/bench.ts'
import { prove } from './selftest/prove.ts'
import type { TokenInfo } from './slots.ts'
import { readState, writeState } from './state.ts'

/** Grows when a probe is added or changed: findings of an older self-test are then not trusted. */
const format = 5

/**
 * The token's abilities: from the state directory if this token and module were tested before, else by testing now.
 * @throws Error when the token lacks something indispensable
 */
export async function findings(
  options: { library: string; stateDirectory?: string | undefined },
  lib: Cryptoki,
  token: TokenInfo,
  run: Run,
): Promise<Findings> {
  const directory = options.stateDirectory
  const file = readLibrary(options.library)
  if (directory === undefined || file === undefined) return prove(run)
  const { major, minor } = lib.C_GetInfo().libraryVersion
  const identity = JSON.stringify([format, token.serial, token.label, token.model, major, minor])
  const name = `self-test-${createHash('sha256').update(identity).update(file).digest('hex')}.json`
  const kept = readState(directory, name) as Findings | undefined
  if (kept !== undefined) return kept
  const found = await prove(run)
  writeState(directory, name, found)
  return found
}

/** The module's own bytes; undefined where it has a bare name that the dynamic linker resolves. */
function readLibrary(library: string): Buffer | undefined {
  try {
    return readFileSync(library)
  } catch {
    return undefined
  }
}
