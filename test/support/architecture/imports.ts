import { posix } from 'node:path'

/** Path from the project's root → text. */
export type Files = Readonly<Record<string, string>>

export interface Import {
  readonly from: string
  /** A file of the project, or the name of a package (with its scope), or node:something. */
  readonly to: string
  /** `import type`: gone at run time. */
  readonly typeOnly: boolean
  readonly reexport: boolean
}

const statement = /^(import|export)\b(\s+type\b(?!\s*[,]|\s+from))?(?:[^'"`;=()]*?\bfrom)?\s*(['"])([^'"\n]+)\3/gm
const dynamic = /\bimport\(\s*(['"])([^'"\n]+)\1\s*\)/g

/** The import lines of one file: static, dynamic and re-exports. */
export function importsOf(from: string, text: string): Import[] {
  const code = withoutComments(text)
  const fixed = [...code.matchAll(statement)].map(([, keyword, type, , specifier = '']) => ({
    from,
    to: resolve(from, specifier),
    typeOnly: type !== undefined,
    reexport: keyword === 'export',
  }))
  const lazy = [...code.matchAll(dynamic)].map(([, , specifier = '']) => ({
    from,
    to: resolve(from, specifier),
    typeOnly: false,
    reexport: false,
  }))
  return [...fixed, ...lazy]
}

const resolve = (from: string, specifier: string): string =>
  specifier.startsWith('.')
    ? posix.join(posix.dirname(from), specifier)
    : specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/')

/** Comments and texts; each may contain the beginning of another, so the first match counts. */
const noise = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

/** Code whose comments are blank and whose texts are whole. */
export const withoutComments = (text: string): string =>
  text.replace(noise, (part) => (part.startsWith('/') ? part.replace(/[^\n]/g, ' ') : part))

/** Code without comments and without quoted texts. */
export const bareCode = (text: string): string => text.replace(noise, (part) => part.replace(/[^\n]/g, ' '))
