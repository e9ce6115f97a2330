import { readdirSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'

/** Of imports that name a file whole. */
const formats: Readonly<Record<string, string>> = { '.ts': 'module-typescript', '.mjs': 'module' }

/** Where set-up joins libraries of many small files (scripts/bundle.mjs). */
const joined = new URL('../../node_modules/.bundled/', import.meta.url)
/** Written by npm with every change of packages. */
const record = new URL('../../node_modules/.package-lock.json', import.meta.url)
const libraries = new Set(listed())

/*
 * Imports of this process after this one take a third of their time: Node would look up on disk for each import of each
 * file whether it names a file, a directory, a link or a package, and read a thousand files of libraries.
 */
registerHooks({
  resolve(specifier, context, next) {
    const library = `${specifier.replace('/', '+')}.mjs`
    if (libraries.has(library)) return { url: new URL(library, joined).href, format: 'module', shortCircuit: true }
    if (!specifier.startsWith('.')) return next(specifier, context)
    const format = formats[specifier.slice(specifier.lastIndexOf('.'))]
    if (format === undefined || context.parentURL === undefined) return next(specifier, context)
    return { url: new URL(specifier, context.parentURL).href, format, shortCircuit: true }
  },
})

/** Nothing where set-up did not run, or not since packages changed: the packages themselves are read then. */
function listed(): readonly string[] {
  try {
    return statSync(joined).mtimeMs > statSync(record).mtimeMs ? readdirSync(joined) : []
  } catch {
    return []
  }
}
