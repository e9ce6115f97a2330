import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { sourceOf } from '../../../src/hsm/strict/helper.ts'
import { runDirectory } from '../../support/directory.ts'

export const guards = ['SENSITIVE', 'EXTRACTABLE', 'DERIVE', 'UNWRAP', 'MODIFIABLE'] as const
export type Guard = (typeof guards)[number]

export interface LaxKek {
  readonly label: string
  readonly id: Buffer
  /** If left out, the key is generated in the token. */
  readonly value?: Buffer
}

const headers = fileURLToPath(new URL('../../../node_modules/pkcs11js/includes/pkcs11', import.meta.url))
const run = promisify(execFile)

/**
 * Makes a KEK as makeStrictKek does, but with one guard missing in its CKA_UNWRAP_TEMPLATE, as older programs made
 * them: by the same program, without that guard and its trial.
 */
export async function makeLaxKek(hsm: Hsm, kek: LaxKek, missing: Guard): Promise<void> {
  const directory = mkdtempSync(join(runDirectory(), 'laxkek-'))
  const source = join(directory, 'lax-kek.c')
  writeFileSync(source, withoutGuard(readFileSync(sourceOf('strict-kek'), 'utf8'), missing))
  const program = join(directory, 'lax-kek')
  await run('gcc', [`-I${headers}`, '-o', program, source, '-ldl'])
  const { library, libraryParameters, serial, pin } = hsm.credentials
  const words = [library, serial, kek.label, kek.id.toString('hex'), String(hsm.capabilities.kwp)]
  if (libraryParameters !== undefined) words.push(libraryParameters)
  const making = run(program, words)
  making.child.stdin?.end(`${pin}\n${kek.value?.toString('hex') ?? ''}\n`)
  await making
}

function withoutGuard(source: string, missing: Guard): string {
  const [before = '', list = '', after] = source.split(/(CK_ATTRIBUTE unwrapped\[\] = \{[^;]*;)/)
  const shorter = list.replace(new RegExp(`ATTRIBUTE\\(CKA_${missing}, \\w+\\),`), '')
  const believing = after?.replace(/int ok = enforced\(.*\);/, 'int ok = enforced(kek, 0) || 1;')
  if (shorter === list || believing === after) throw new Error('the program is not as it was')
  return `${before}${shorter}${believing}`
}
