import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

/** Of imports that name a file whole. */
const formats: Readonly<Record<string, string>> = { '.ts': 'module-typescript', '.mjs': 'module' }

const root = new URL('../../', import.meta.url)
const { joined, libraries } = found()

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

/**
 * The libraries of many small files that set-up joined (scripts/bundle.mjs). Their folder has the name of npm's record
 * of the packages and of the way to join them: times of modification would not survive a copy of the installation.
 * Where set-up did not run, or not since either changed, there is none, and the packages themselves are read.
 */
function found(): { readonly joined: URL; readonly libraries: ReadonlySet<string> } {
  const named = ['node_modules/.package-lock.json', 'scripts/bundle.mjs']
  try {
    const name = hash('sha256', Buffer.concat(named.map((file) => readFileSync(new URL(file, root)))))
    const joined = new URL(`node_modules/.bundled/${name}/`, root)
    return { joined, libraries: new Set(readdirSync(joined)) }
  } catch {
    return { joined: root, libraries: new Set() }
  }
}
