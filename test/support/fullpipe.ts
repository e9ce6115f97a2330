import { spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { runDirectory } from './directory.ts'

/** A pipe without room. */
export interface FullPipe extends Disposable {
  /** To write to it, blocking as the descriptors that a shell gives do. */
  readonly descriptor: number
  /** Reads all that is in it now. */
  read(): string
}

export function fullPipe(): FullPipe {
  const directory = mkdtempSync(join(runDirectory(), 'pipe-'))
  const path = join(directory, 'pipe')
  spawnSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const descriptor = openSync(path, constants.O_WRONLY)
  for (const size of [4096, 1]) while (accepts(reader, size));
  return {
    descriptor,
    read() {
      const buffer = Buffer.alloc(1 << 20)
      try {
        return buffer.toString('utf8', 0, readSync(reader, buffer))
      } catch {
        return ''
      }
    },
    [Symbol.dispose]() {
      closeSync(reader)
      closeSync(descriptor)
      rmSync(directory, { recursive: true })
    },
  }
}

function accepts(descriptor: number, size: number): boolean {
  try {
    writeSync(descriptor, '\n'.repeat(size))
    return true
  } catch {
    return false
  }
}
