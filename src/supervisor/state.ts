import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Whether this node is sealed, kept on its own disk so that restarts and replacements come up in it. */
export interface SealState {
  readonly sealed: boolean
  /**
   * Durable when it returns.
   * @throws Error when the disk does not take it; a seal counts nevertheless as long as this process runs
   */
  set(sealed: boolean): void
}

/**
 * Opens the seal state in the node's state directory, which is made if need be.
 * @param before this node's state until it is set here; after an upgrade the one that its disk may not have taken
 * @throws Error when the directory cannot be made or read
 */
export function openSealState(
  stateDirectory: string,
  before: Pick<SealState, 'sealed'> = { sealed: false },
): SealState {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  const marker = join(stateDirectory, 'sealed')
  let held: boolean | undefined
  return {
    get sealed() {
      return (held ?? before.sealed) || existsSync(marker)
    },
    set(sealed) {
      if (sealed) {
        held = true
        closeSync(openSync(marker, 'w', 0o600))
      } else {
        rmSync(marker, { force: true })
        held = false
      }
      const directory = openSync(stateDirectory, 'r')
      try {
        fsyncSync(directory)
      } finally {
        closeSync(directory)
      }
    },
  }
}
