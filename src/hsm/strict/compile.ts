import { execFile } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildDirectory, modified, sourceOf } from './helper.ts'

const headers = fileURLToPath(new URL('../../../node_modules/pkcs11js/includes/pkcs11', import.meta.url))

/**
 * Compiles a C source of softhsm/ with gcc, unless the result is up to date. For set-up and tests.
 * @param name the file without `.c`
 * @param directory where the result goes; default .build of the checkout
 * @returns path of the program, or of the shared object
 * @throws Error with the compiler's words
 */
export async function compile(
  name: string,
  kind: 'program' | 'shared object',
  directory = buildDirectory,
): Promise<string> {
  const source = sourceOf(name)
  const output = join(directory, kind === 'program' ? name : `${name}.so`)
  if (modified(output) > modified(source)) return output
  mkdirSync(directory, { recursive: true })
  const draft = join(directory, `${basename(output)}.${process.pid}`)
  const shape = kind === 'program' ? [] : ['-shared', '-fPIC']
  const flags = ['-O2', '-Wall', '-Wextra', '-Werror', `-I${headers}`]
  try {
    await promisify(execFile)('gcc', [...flags, ...shape, '-o', draft, source, '-ldl'])
    renameSync(draft, output)
  } finally {
    rmSync(draft, { force: true })
  }
  return output
}

/** Run as a script by set-up. */
if (import.meta.main) await compile('strict-kek', 'program')
