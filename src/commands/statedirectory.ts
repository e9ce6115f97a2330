import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigError } from '../config/problems.ts'

/** Makes a node's state directory if it is missing. @throws ConfigError when it cannot be made or written */
export function makeStateDirectory(path: string): void {
  const directory = resolve(path)
  try {
    make(directory)
    accessSync(directory, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new ConfigError([`stateDirectory: ${(error as Error).message}`])
  }
}

/** One directory after the other: `recursive` never returns below a directory in which none can be made (/proc). */
function make(directory: string): void {
  if (isDirectory(directory)) return
  make(dirname(directory))
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    // Another process may have been faster.
    if (!isDirectory(directory)) throw error
  }
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
