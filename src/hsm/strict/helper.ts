import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
/** Where set-up puts compiled programs. */
export const buildDirectory = join(root, '.build')
/** A C source of softhsm/. @param name without `.c` */
export const sourceOf = (name: string): string => join(root, 'softhsm', `${name}.c`)

/**
 * The program that makes strict KEKs. Set-up compiles it (compile.ts); the server itself never runs a compiler.
 * @returns its path
 * @throws Error saying how to get it, where it is missing or older than its source
 */
export function strictHelper(directory = buildDirectory): string {
  const path = join(directory, 'strict-kek')
  const [made, source] = [modified(path), modified(sourceOf('strict-kek'))]
  if (made >= source && made > 0) return path
  throw new Error(
    `strict mode: ${path} is ${made === 0 ? 'missing' : 'older than its source'}: node scripts/setup.mjs compiles it`,
  )
}

/** Milliseconds since the epoch; 0 for a missing file. */
export const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
