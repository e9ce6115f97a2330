import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { breaches } from './support/architecture/breaches.ts'

const root = `${import.meta.dirname}/../`

test('the code keeps its rules', () => {
  const paths = globSync('{src,test,scripts,bin}/**/*.{ts,mjs}', { cwd: root })
  expect(paths.length).toBeGreaterThan(20)
  expect(breaches(Object.fromEntries(paths.map((path) => [path, readFileSync(root + path, 'utf8')])))).toEqual([])
})

/** One file that imports another which exists. */
const importing = (from: string, to: string, line = 'import { x } from') => {
  const up = '../'.repeat(from.split('/').length - 1)
  return { [from]: `${line} '${to.includes('.ts') ? up + to : to}'\n`, ...(to.endsWith('.ts') ? { [to]: '' } : {}) }
}

test.each([
  ['src/main.ts', 'src/commands/server.ts'],
  ['src/worker.ts', 'src/app.ts'],
  ['src/app.ts', 'src/engines/transit/index.ts'],
  ['src/app.ts', 'src/hsm/hsm.ts'],
  ['src/engines/transit/keys.ts', 'src/engines/transit/ring.ts'],
  ['src/engines/transit/keys.ts', 'src/store/database.ts'],
  ['src/request/pipeline.ts', 'src/audit/line.ts'],
  ['src/request/pipeline.ts', 'src/quota/limit.ts'],
  ['src/auth/tokens.ts', 'src/keys/custody.ts'],
  ['src/keys/custody.ts', 'src/hsm/hsm.ts'],
  ['src/hsm/hsm.ts', 'src/log.ts'],
  ['src/crypto/der.ts', 'src/errors.ts'],
  ['src/crypto/der.ts', 'src/crypto/pem.ts'],
  ['src/crypto/der.ts', 'node:crypto'],
  ['src/crypto/der.ts', 'node:buffer'],
  ['src/keys/custody.ts', 'src/crypto/der.ts'],
  ['src/x509/name.ts', 'src/crypto/der.ts'],
  ['src/engine.ts', 'src/route.ts'],
  ['src/config.ts', 'src/config/schema.ts'],
  ['src/http/server.ts', 'koa'],
  ['src/store/pool.ts', 'mysql2/promise'],
  ['src/hsm/module.ts', 'graphene-pk11'],
  ['src/x509/bundle.ts', '@peculiar/x509'],
  ['test/store/a.test.ts', 'mysql2'],
])('%s may import %s', (from, to) => {
  expect(breaches(importing(from, to))).toEqual([])
})

test.each([
  ['src/app.ts', 'src/main.ts', 'main lies above app'],
  ['src/http/server.ts', 'src/app.ts', 'app lies above http'],
  ['src/request/pipeline.ts', 'src/engines/transit/index.ts', 'engines lies above request'],
  ['src/auth/tokens.ts', 'src/request/mounts.ts', 'request lies above auth'],
  ['src/keys/custody.ts', 'src/auth/tokens.ts', 'auth lies above keys'],
  ['src/hsm/hsm.ts', 'src/keys/custody.ts', 'keys lies above hsm'],
  ['src/errors.ts', 'src/hsm/hsm.ts', 'hsm lies above errors'],
  ['src/store/pool.ts', 'src/hsm/hsm.ts', 'store and hsm lie on the same level'],
  ['src/keys/custody.ts', 'src/x509/der.ts', 'keys and x509 lie on the same level'],
  ['src/x509/der.ts', 'src/keys/custody.ts', 'x509 and keys lie on the same level'],
  ['src/crypto/der.ts', 'src/keys/custody.ts', 'crypto must not import keys'],
  ['src/crypto/der.ts', 'src/hsm/hsm.ts', 'crypto must not import hsm'],
  ['src/crypto/der.ts', 'src/store/pool.ts', 'crypto must not import store'],
  ['src/crypto/der.ts', 'src/log.ts', 'crypto must not import log'],
  ['src/crypto/der.ts', 'node:fs', 'crypto does no I/O'],
  ['src/crypto/der.ts', 'node:fs/promises', 'crypto does no I/O'],
  ['src/crypto/der.ts', 'node:net', 'crypto does no I/O'],
  ['src/crypto/der.ts', 'node:child_process', 'crypto does no I/O'],
  ['src/crypto/der.ts', '@peculiar/x509', 'crypto does no I/O'],
  ['src/http/server.ts', 'src/engines/transit/index.ts', 'http and engines lie on the same level'],
  ['src/system/mounts.ts', 'src/http/server.ts', 'system and http lie on the same level'],
  ['src/audit/line.ts', 'src/request/path.ts', 'audit and request lie on the same level'],
  ['src/leases/lease.ts', 'src/jobs/job.ts', 'leases and jobs lie on the same level'],
  ['src/engines/pki/issue.ts', 'src/engines/transit/ring.ts', 'engines never import each other'],
  ['src/engines/transit/keys.ts', 'src/hsm/hsm.ts', 'engines must not import hsm'],
  ['src/unavailable.ts', 'src/store/pool.ts', 'unavailable must not import store'],
  ['src/keys/custody.ts', 'test/support/token.ts', 'src/ imports nothing from outside'],
  ['src/misc/a.ts', 'src/log.ts', 'src/misc has no level'],
  ['src/keys/a.ts', 'src/misc/b.ts', 'src/misc has no level'],
  ['src/request/pipeline.ts', 'koa', 'only http may import it'],
  ['src/request/pipeline.ts', '@koa/router', 'only http may import it'],
  ['src/keys/custody.ts', 'mysql2', 'only store may import it'],
  ['src/engines/transit/keys.ts', 'mysql2/promise', 'only store may import it'],
  ['src/keys/custody.ts', 'pkcs11js', 'only hsm may import it'],
  ['src/store/pool.ts', 'graphene-pk11', 'only hsm may import it'],
  ['src/engines/pki/issue.ts', '@peculiar/x509', 'only x509 and keys may import it'],
  ['src/engines/pki/issue.ts', 'pkijs', 'only x509 and keys may import it'],
])('%s must not import %s', (from, to, why) => {
  for (const line of ['import { x } from', 'import type { x } from', 'import', 'import {\n  x,\n  type y,\n} from']) {
    const found = breaches(importing(from, to, line))
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(why)
  }
  expect(breaches({ ...importing(from, to), [from]: '// nothing\n' }).join()).not.toContain(to)
})

test('an import that is fetched at run time counts', () => {
  const text = "const module = await import('pkcs11js')\n"
  expect(breaches({ 'src/keys/custody.ts': text })).toEqual(['src/keys/custody.ts → pkcs11js: only hsm may import it'])
})

test('the supervisor must not load the PKCS#11 module by a way round', () => {
  const files = {
    'src/supervisor.ts': "import { a } from './app.ts'\n",
    'src/app.ts': "import { b } from './hsm/hsm.ts'\n",
    'src/hsm/hsm.ts': '',
  }
  expect(breaches(files)).toEqual(['src/supervisor.ts → src/app.ts → src/hsm/hsm.ts: must not load the PKCS#11 module'])
  expect(breaches({ ...files, 'src/supervisor.ts': "import type { a } from './app.ts'\n" })).toEqual([])
})

test('an import cycle is found, also one of types alone and one of three files', () => {
  const two = {
    'src/keys/a.ts': "import { b } from './b.ts'\n",
    'src/keys/b.ts': "import type { a } from './a.ts'\n",
  }
  expect(breaches(two)).toEqual(['import cycle: src/keys/a.ts → src/keys/b.ts → src/keys/a.ts'])
  const three = { ...two, 'src/keys/b.ts': "import './c.ts'\n", 'src/keys/c.ts': "import { a } from './a.ts'\n" }
  expect(breaches(three)).toHaveLength(1)
})

test.each(['src/keys/a.ts', 'test/keys/a.test.ts', 'scripts/a.mjs'])('%s may have 400 lines and not 401', (path) => {
  expect(breaches({ [path]: '\n'.repeat(400) })).toEqual([])
  expect(breaches({ [path]: '\n'.repeat(401) })).toEqual([`${path}: 401 lines; the limit is 400`])
})

const fillLines = (count: number): string => '  f()\n'.repeat(count)

test.each([
  ['a declaration', (filling: string) => `function f() {\n${filling}}\n`],
  ['a generator', (filling: string) => `export async function* f() {\n${filling}}\n`],
  ['an arrow', (filling: string) => `export const f = () => {\n${filling}}\n`],
  ['an arrow without a block', (filling: string) => `export const f = () => [\n${filling.replaceAll('()', '(),')}]\n`],
  ['a method', (filling: string) => `class A {\n  f(): void {\n${filling}  }\n}\n`],
  ['a private method', (filling: string) => `class A {\n  async #f<T>(a: T) {\n${filling}  }\n}\n`],
  ['an accessor', (filling: string) => `class A {\n  get f() {\n${filling}  }\n}\n`],
  ['a method of an object', (filling: string) => `const a = { run({ b }: C) {\n${filling}} }\n`],
  ['a callback', (filling: string) => `g(1, (a) => {\n${filling}})\n`],
  ['one inside a class field', (filling: string) => `class A {\n  f = function () {\n${filling}}\n}\n`],
])('%s may have 60 lines and not 61', (_, make) => {
  expect(breaches({ 'src/keys/a.ts': make(fillLines(58)) })).toEqual([])
  const found = breaches({ 'src/keys/a.ts': make(fillLines(59)) })
  expect(found).toEqual([expect.stringMatching(/^src\/keys\/a\.ts:[12]: a function of 61 lines; the limit is 60$/)])
})

test('a class, a table and a text may be longer than a function', () => {
  const methods = Array.from({ length: 40 }, (_, index) => `  f${index}() {\n    return '{'\n  }\n`).join('')
  const text = `class A {\n${methods}}\nconst b = [\n${'  1,\n'.repeat(70)}]\nconst c = \`\n${'{\n'.repeat(70)}\`\n`
  expect(breaches({ 'src/keys/a.ts': text })).toEqual([])
})

test('a folder of src/ may hold 25 files beside its folders and not 26', () => {
  const files = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`src/keys/f${index}.ts`, '']))
  expect(breaches({ ...files(25), 'src/keys/kek/a.ts': '' })).toEqual([])
  expect(breaches(files(26))).toEqual(['src/keys: 26 files; the limit is 25'])
})

test.each([
  ['export default function a() {}', 'a default export'],
  ['export { a as default }', 'a default export'],
  ['export enum Colour { Red }', 'an enum'],
  ['const enum Colour { Red }', 'an enum'],
  ['const a: any = 1', 'the type any'],
  ['const a = b as any', 'the type any'],
  ['const a: Record<string, any> = {}', 'the type any'],
  ['const a = (b: any[]) => b', 'the type any'],
  ["export { b } from './b.ts'", 'no barrels'],
  ["export * from './b.ts'", 'no barrels'],
  ["export type { b } from './b.ts'", 'no barrels'],
])('%s is refused', (code, what) => {
  const found = breaches({ 'src/keys/a.ts': `${code}\n`, 'src/keys/b.ts': '' })
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(what)
})

test.each([
  'name.toLowerCase()',
  'name.toLocaleUpperCase()',
  "name.localeCompare('a', 'en')",
  'foldName(name)',
  'name.trim()',
  'name.trimEnd()',
  "name.replace(/[/]A\\/$/gi, '')",
  '/^a$/i.test(name)',
])('a name is folded by %s behind the pipeline only where a value is meant', (fold) => {
  const code = `const a = (name: string) => ${fold.startsWith('/') ? `!${fold}` : fold}\n`
  const late = expect.stringContaining('changes the case or blanks of a text 1 times, not 0')
  for (const path of ['src/system/routes/a.ts', 'src/engines/pki/a.ts', 'src/auth/a.ts', 'src/keys/managed/a.ts']) {
    expect(breaches({ [path]: code })).toEqual([late])
  }
  expect(breaches({ 'src/x509/a.ts': code, 'src/request/path.ts': code })).toEqual([])
  const more = expect.stringContaining('2 times, not 1 (the scheme of a request line)')
  expect(breaches({ 'src/request/path.ts': code + code.replace(' a ', ' b ') })).toEqual([more])
})

test('an index file is refused, except the route tables of an engine and of sys/', () => {
  expect(breaches({ 'src/keys/index.ts': '' })).toEqual(['src/keys/index.ts: an index file (no barrels)'])
  expect(breaches({ 'src/engines/transit/index.ts': '', 'src/system/index.ts': '' })).toEqual([])
})

test('words in comments and texts are no breach', () => {
  const text = [
    "// import { x } from 'mysql2'",
    "/* const a: any = 1 */ const b = 'a: any, b'",
    'const any = Promise.any([])',
    'export const words = "export default"',
  ]
  expect(breaches({ 'src/keys/a.ts': `${text.join('\n')}\n` })).toEqual([])
})
