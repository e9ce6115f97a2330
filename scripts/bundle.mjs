// Set-up runs this under Node 24. It joins each library of hundreds of small files into a few: finding and opening such
// files was over half of the time of any command. src/supervisor/loading.ts takes the joined form where there is one of
// the present packages.
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { bundled } from './launch.mjs'

/** The names by which src imports them. */
const names = [
  ...['graphene-pk11', 'koa', 'mysql2', 'prom-client', 'yaml'],
  ...['typebox', 'typebox/schema', 'typebox/system', 'typebox/value'],
]

const target = bundled()
const folder = `${target}.${process.pid}`
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
// Whole or absent, whatever ends this process. Another set-up may have been faster: processes may read its files, which
// therefore stay.
await rename(folder, target).catch(async (error) => {
  await rm(folder, { recursive: true })
  if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
})

// Those of earlier packages, and what killed set-ups left; young ones may be of a set-up that still works.
const young = Date.now() - 3_600_000
for (const name of await readdir(dirname(target))) {
  const other = join(dirname(target), name)
  const changed = await stat(other).catch(() => undefined)
  if (other !== target && changed && changed.mtimeMs < young) await rm(other, { recursive: true, force: true })
}
