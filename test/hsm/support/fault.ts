import { closeSync, mkdtempSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../../../src/hsm/strict/compile.ts'
import { runDirectory } from '../../support/directory.ts'

/** Groups of calls, as in softhsm/p11fault.c. */
export const group = {
  init: 1,
  info: 2,
  session: 4,
  login: 8,
  object: 16,
  cipher: 32,
  sign: 64,
  key: 128,
  digest: 256,
  random: 512,
  all: 0x3ff,
} as const

const words = [
  'groups',
  'rv',
  'delay',
  'every',
  'remaining',
  'counted',
  'hit',
  'logins',
  'pairs',
  'opened',
  'closed',
  'readable',
  'extractable',
] as const

export interface Fault {
  readonly groups: number
  readonly rv?: number
  readonly delayMicroseconds?: number
  /** Hits every nth call of the groups; default every one. */
  readonly every?: number
  /** How often; default without end. */
  readonly times?: number
}

/** The fault shim in front of a module. */
export interface Shim extends Disposable {
  readonly library: string
  set(fault: Fault): void
  clear(): void
  /** From now on keys are unwrapped as readable or extractable (1), or as the template says (0). */
  careless(readable: 0 | 1, extractable: 0 | 1): void
  read(): Record<(typeof words)[number], number>
}

/** Compiles the shim and points this process at it: one for each process, made before the module is loaded. */
export async function createShim(module: string): Promise<Shim> {
  const library = await compile('p11fault', 'shared object')
  const file = join(mkdtempSync(join(runDirectory(), 'fault-')), 'control')
  writeFileSync(file, Buffer.alloc(4 * words.length))
  process.env.P11FAULT_MODULE = module
  process.env.P11FAULT_FILE = file
  const descriptor = openSync(file, 'r+')
  const write = (values: readonly number[], at = 0): void => {
    writeSync(descriptor, new Uint8Array(Uint32Array.from(values).buffer), 0, 4 * values.length, 4 * at)
  }
  return {
    library,
    // The groups go last: the others must stand when they begin to count.
    set({ groups, rv = 0, delayMicroseconds = 0, every = 1, times = 0xffffffff }) {
      write([0])
      write([rv, delayMicroseconds, every, times, 0, 0], 1)
      write([groups])
    },
    clear: () => write([0]),
    careless: (...guards) => write(guards, words.indexOf('readable')),
    read() {
      const bytes = Buffer.alloc(4 * words.length)
      readSync(descriptor, bytes, 0, bytes.length, 0)
      const values = words.map((name, index) => [name, bytes.readUInt32LE(4 * index)])
      return Object.fromEntries(values)
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  }
}
