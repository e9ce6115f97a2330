import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Databases that are started after this call wait longer for their disk: most disks take many times as long to make a
 * write durable as a virtual machine that answers from its host's memory.
 * @param directory for the library that does it, until the databases have ended
 * @throws Error when there is no C compiler
 */
export function slowSync(microseconds: number, directory: string): void {
  const library = join(directory, 'slowsync.so')
  const source = join(import.meta.dirname, 'slowsync.c')
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'])
  process.env.LD_PRELOAD = library
  process.env.BENCH_SLOW_PROCESS = 'mariadbd'
  process.env.BENCH_SLOW_MICROSECONDS = String(microseconds)
}
