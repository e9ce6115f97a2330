import { posix } from 'node:path'
import { foldsLate } from './folding.ts'
import { longFunctions } from './functions.ts'
import { bareCode, type Files, type Import, importsOf } from './imports.ts'
import { misdirected } from './levels.ts'

const longestFileLines = 400
const longestFunctionLines = 60
const fullestFolderFiles = 25

/** Every breach of the rules on levels, imports and shapes in these files, one line each. Pure. */
export function breaches(files: Files): string[] {
  const imports = Object.entries(files).flatMap(([path, text]) => importsOf(path, text))
  const inSource = imports.filter(({ from }) => from.startsWith('src/'))
  return [
    ...Object.entries(files).flatMap(([path, text]) => shape(path, text)),
    ...inSourceFiles(files).flatMap(([path, text]) => functionsTooLong(path, text)),
    ...inSourceFiles(files).flatMap(([path, text]) => foldsLate(path, bareCode(text))),
    ...foldersTooFull(Object.keys(files)),
    ...new Set(inSource.flatMap((line) => misdirected(line) ?? [])),
    ...inSource.flatMap(({ from, to, reexport }) =>
      reexport && to in files ? [`${from}: passes on exports of ${to} (no barrels)`] : [],
    ),
    ...cycles(imports, files),
    ...reaches(imports, /^src\/(supervisor|unavailable)\b/, /^src\/hsm\//, 'must not load the PKCS#11 module'),
  ]
}

/** Breaches of the rules on the shape of one file. */
function shape(path: string, text: string): string[] {
  const code = bareCode(text)
  const lines = text.split('\n').length - 1
  const found: [boolean, string][] = [
    [lines > longestFileLines, `${lines} lines; the limit is ${longestFileLines}`],
    [/^export default\b|^export \{[^}]*\bas default\b/m.test(code), 'a default export'],
    [/^\s*(export\s+)?(declare\s+)?(const\s+)?enum\s+\w+\s*\{/m.test(code), 'an enum'],
    [/(?:[:<|&,(=]|\bas|\bextends)\s*any\b\s*(?=[\s,;)>\]|&=[{]|$)/m.test(code), 'the type any'],
    [
      /\/index\.ts$/.test(path) && !/^src\/(system|engines\/[^/]+)\/index\.ts$/.test(path),
      'an index file (no barrels)',
    ],
  ]
  return found.filter(([is]) => is).map(([, what]) => `${path}: ${what}`)
}

const inSourceFiles = (files: Files): [string, string][] =>
  Object.entries(files).filter(([path]) => path.startsWith('src/'))

const functionsTooLong = (path: string, text: string): string[] =>
  longFunctions(text, longestFunctionLines).map(
    ({ line, lines }) => `${path}:${line}: a function of ${lines} lines; the limit is ${longestFunctionLines}`,
  )

/** Folders with too many files of their own to survey. */
function foldersTooFull(paths: readonly string[]): string[] {
  const folders = Map.groupBy(paths, (path) => posix.dirname(path))
  return [...folders]
    .filter(([, inside]) => inside.length > fullestFolderFiles)
    .map(([folder, inside]) => `${folder}: ${inside.length} files; the limit is ${fullestFolderFiles}`)
}

/** Each import cycle once, as the path that closes it; types count, because a reader goes round in circles as well. */
function cycles(imports: readonly Import[], files: Files): string[] {
  const next = graph(imports.filter(({ to }) => to in files))
  const found: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file)
    if (start >= 0) found.push(`import cycle: ${[...path.slice(start), file].join(' → ')}`)
    if (start >= 0 || done.has(file)) return
    for (const target of next.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of next.keys()) visit(file, [])
  return found
}

/** Whether anything in `start` reaches `goal` at run time, over any number of static imports. */
function reaches(imports: readonly Import[], start: RegExp, goal: RegExp, rule: string): string[] {
  const next = graph(imports.filter(({ typeOnly }) => !typeOnly))
  const seen = new Set<string>()
  const walk = (file: string, path: readonly string[]): string[] => {
    if (goal.test(file)) return [`${[...path, file].join(' → ')}: ${rule}`]
    if (seen.has(file)) return []
    seen.add(file)
    return [...(next.get(file) ?? [])].flatMap((target) => walk(target, [...path, file]))
  }
  return [...next.keys()].filter((file) => start.test(file)).flatMap((file) => walk(file, []))
}

function graph(imports: readonly Import[]): Map<string, Set<string>> {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of imports) next.set(from, (next.get(from) ?? new Set()).add(to))
  return next
}
