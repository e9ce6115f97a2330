import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { start } from './cli.ts'
import { createSite } from './site.ts'

const root = join(import.meta.dirname, '../..')

/** A checkout in which set-up has not compiled the helper of strict mode. */
function checkout(directory: string): string {
  mkdirSync(directory)
  for (const folder of ['src', 'softhsm', 'scripts']) {
    cpSync(join(root, folder), join(directory, folder), { recursive: true })
  }
  cpSync(join(root, 'package.json'), join(directory, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  return directory
}

test('strict mode without its helper is refused when it starts, and nothing is compiled', async () => {
  await using site = await createSite({ strict: true })
  const bare = checkout(join(site.directory, 'checkout'))
  for (const words of [['server'], ['init'], ['config', 'check']]) {
    await using running = start([...words, '--config', site.file], {}, join(bare, 'src/main.ts'))
    expect(await running.ended, words.join(' ')).not.toBe(0)
    expect(running.stderr(), words.join(' ')).toContain('strict-kek is missing: node scripts/setup.mjs compiles it')
  }
  expect(existsSync(join(bare, '.build'))).toBe(false)
})
