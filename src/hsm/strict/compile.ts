import { execFile } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const headers = join(root, 'node_modules/pkcs11js/includes/pkcs11')

/**
 * Compiles a C source of softhsm/ with gcc, unless that was done since it was changed.
 * @param name the file without `.c`
 * @param directory where the result goes; default .build of the checkout
 * @returns path of the program, or of the shared object
 * @throws Error with the compiler's words
 */
export async function compile(
  name: string,
  kind: 'program' | 'shared object',
  directory = join(root, '.build'),
): Promise<string> {
  const source = join(root, 'softhsm', `${name}.c`)
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

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
