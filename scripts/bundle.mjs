// Set-up runs this under Node 24. It joins each library of hundreds of small files into a few: finding and opening such
// files was over half of the time of any command. src/supervisor/loading.ts takes the joined form where there is one that is
// newer than npm's last change of node_modules.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { bundled } from './launch.mjs'

/** The names by which src imports them. */
const names = [
  ...['graphene-pk11', 'koa', 'mysql2', 'prom-client', 'yaml'],
  ...['typebox', 'typebox/schema', 'typebox/system', 'typebox/value'],
]

const folder = `${bundled}.${process.pid}`
const entries = join(folder, 'entries')
await mkdir(entries, { recursive: true })
const input = {}
for (const name of names) {
  const file = name.replace('/', '+')
  input[file] = join(entries, `${file}.mjs`)
  // Named one by one: of a CommonJS package a bundler cannot tell the names.
  const exported = Object.keys(await import(name)).filter((key) => /^\w+$/.test(key))
  await writeFile(input[file], `export { ${exported.join(', ')} } from '${name}'\n`)
}
// There must be one copy only of the native module, with one state.
const bundle = await rolldown({ input, platform: 'node', external: ['pkcs11js'], checks: { eval: false } })
await bundle.write({
  ...{ dir: folder, format: 'esm', sanitizeFileName: false },
  ...{ entryFileNames: '[name].mjs', chunkFileNames: 'parts/[name].mjs' },
})
await rm(entries, { recursive: true })
// Whole or absent, whatever ends this process; another set-up may have been faster.
await rm(bundled, { recursive: true, force: true })
await rename(folder, bundled).catch(() => rm(folder, { recursive: true }))
