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
 * @throws Error when the directory cannot be made or read
 */
export function openSealState(stateDirectory: string): SealState {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  const marker = join(stateDirectory, 'sealed')
  let held = false
  return {
    get sealed() {
      return held || existsSync(marker)
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
