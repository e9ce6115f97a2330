import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

// As scripts/setup.mjs asks; a module of plain JavaScript has no types.
const asked = `import { bundled } from './scripts/launch.mjs'; console.log(JSON.stringify(bundled()))`
const folder = pathToFileURL(`${printed(asked)}/`)
const files = readdirSync(folder).filter((file) => file.endsWith('.mjs'))
const named = (file: string) => basename(file, '.mjs').replace('+', '/')

/** What a process of its own prints as JSON; vitest would import the libraries in its own way. */
function printed(script: string): unknown {
  const options = { cwd: new URL('../../', import.meta.url), encoding: 'utf8' } as const
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', script], options))
}

test('a process reads each library that set-up joined, and only in the joined form', () => {
  const read = printed(`
    import { registerHooks } from 'node:module'
    await import('./src/supervisor/loading.ts')
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    for (const name of ['app.ts', 'config.ts', 'commands/server.ts']) await import('./src/' + name)
    console.log(JSON.stringify(urls.filter((url) => url.includes('node_modules'))))
    process.exit(0)`) as string[]
  for (const file of files) {
    expect(read, file).toContain(new URL(file, folder).href)
    expect(read.filter((url) => url.includes(`node_modules/${named(file).split('/')[0]}/`))).toEqual([])
  }
  expect(read.some((url) => url.endsWith('/node_modules/pkcs11js/index.js'))).toBe(true)
})

test('each joined form exports the names that its library exports', () => {
  const names = (specifier: string) => `Object.keys(await import(${JSON.stringify(specifier)}))`
  const pairs = files.map((file) => `[${names(named(file))}, ${names(new URL(file, folder).href)}]`)
  const exported = printed(`console.log(JSON.stringify([${pairs}])); process.exit(0)`) as [string[], string[]][]
  for (const [library, joined] of exported) {
    expect(joined).not.toEqual([])
    expect(joined.sort()).toEqual(library.filter((name) => /^\w+$/.test(name)).sort())
  }
})

test('neither a worker nor a supervisor loads the parts of Node that it does not use', () => {
  const parts = printed(`
    await import('./src/supervisor/loading.ts')
    for (const name of ['app.ts', 'commands/program.ts', 'commands/server.ts']) await import('./src/' + name)
    console.log(JSON.stringify(process.moduleLoadList.map((part) => part.slice(part.indexOf(' ') + 1))))
    process.exit(0)`)
  expect(parts).toContain('http')
  expect(parts).not.toContain('internal/deps/undici/undici')
})
