import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A small JSON file in the state directory; undefined if missing or unreadable: its content can be found out again. */
export function readState(directory: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(join(directory, name), 'utf8'))
  } catch {
    return undefined
  }
}

/** Replaces the file whole; concurrent workers write the same content, each through a draft of its own. */
export function writeState(directory: string, name: string, value: unknown): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const draft = join(directory, `${name}.${process.pid}`)
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600, flush: true })
  renameSync(draft, join(directory, name))
}
