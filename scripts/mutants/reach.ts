import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** Which file names which: imports, and paths of programs that a file starts. */
export class Reach {
  /** File → files that name it. */
  readonly #namedBy = new Map<string, Set<string>>()

  /** @param files path from the project's root → text */
  constructor(files: ReadonlyMap<string, string>) {
    for (const [file, text] of files) {
      for (const [, name = ''] of text.matchAll(/'([^'\n]+\.(?:ts|mjs))'/g)) {
        const target = posix.join(posix.dirname(file), name)
        if (files.has(target)) this.#namedBy.set(target, (this.#namedBy.get(target) ?? new Set()).add(file))
      }
    }
  }

  static of(root: string): Reach {
    const paths = globSync('{src,test,scripts,bin}/**/*.{ts,mjs}', { cwd: root })
    return new Reach(new Map(paths.map((path) => [path, readFileSync(posix.join(root, path), 'utf8')])))
  }

  importers(path: string): string[] {
    return [...(this.#namedBy.get(path) ?? [])]
  }

  /** Test files that lead to a file, and in how many steps. */
  testsOf(path: string): Map<string, number> {
    const distances = new Map([[path, 0]])
    // Iterating a Map visits entries added on the way: breadth first.
    for (const [file, distance] of distances)
      for (const next of this.importers(file)) if (!distances.has(next)) distances.set(next, distance + 1)
    return new Map([...distances].filter(([file]) => file.endsWith('.test.ts')))
  }
}
