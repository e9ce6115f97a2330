import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Value imports, and those that wait at the beginning of a line; an `await import()` in a function is later. */
const atOnce = /^(?:(?:import|export)\s(?!type\b)[^'"]*?from\s+|import\s+|const \{[^}]*\} = await import\()'([^']+)'/gms

/** Everything a file loads when it starts: its imports and theirs, packages by name. */
function loadedBy(url: URL, seen = new Set<string>()): Set<string> {
  seen.add(url.pathname)
  for (const [, name = ''] of readFileSync(url, 'utf8').matchAll(atOnce)) {
    if (!name.startsWith('.')) seen.add(name)
    else if (!seen.has(new URL(name, url).pathname)) loadedBy(new URL(name, url), seen)
  }
  return seen
}

test.each(['main.ts', 'unavailable.ts'])('%s loads neither the PKCS#11 module nor a database driver', (name) => {
  const loaded = [...loadedBy(new URL(`../../src/${name}`, import.meta.url))]
  expect(loaded).toContain('pino')
  // This module only locates a file.
  const helper = new URL('../../src/hsm/strict/helper.ts', import.meta.url)
  expect([...loadedBy(helper)].filter((one) => !one.startsWith('node:'))).toEqual([helper.pathname])
  const others = loaded.filter((one) => one !== helper.pathname)
  expect(others.filter((one) => /pkcs11js|graphene|mysql2|\/hsm\/|\/store\/database/.test(one))).toEqual([])
})

test('a worker loads both', () => {
  const loaded = [...loadedBy(new URL('../../src/worker.ts', import.meta.url))]
  expect(loaded).toContain('pkcs11js')
  expect(loaded.some((one) => one.startsWith('mysql2'))).toBe(true)
})
