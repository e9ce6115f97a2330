import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { folders } from './sample.ts'
import { project, type Site } from './trial/site.ts'

/** The result of a test file without a mutant. */
interface Entry {
  readonly hash: string
  readonly seconds: number
  /** long: stopped after the longest time that counts. */
  readonly verdict: 'passed' | 'failed' | 'long'
  /** Functions that it ran, as indices of `functions`. */
  readonly ran: readonly number[]
}

interface Stored {
  readonly functions: readonly string[]
  readonly tests: Readonly<Record<string, Entry>>
}

export interface Usable {
  readonly file: string
  readonly seconds: number
}

const store = join(project, '.build', 'mutants-tests.json')
/** Files in one run: starting vitest costs a second. */
const batch = 6

const hashOf = (file: string): string =>
  createHash('sha256')
    .update(readFileSync(join(project, file)))
    .digest('hex')

/**
 * Durations of test files and the functions of the mutated folders that they run, kept in .build/ for the next time.
 */
export class Rehearsal {
  readonly #functions = new Map<string, number>()
  readonly #tests = new Map<string, Entry>()

  constructor() {
    if (!existsSync(store)) return
    const { functions, tests } = JSON.parse(readFileSync(store, 'utf8')) as Stored
    for (const [index, name] of functions.entries()) this.#functions.set(name, index)
    for (const [file, entry] of Object.entries(tests)) this.#tests.set(file, entry)
  }

  /** Runs the files that are new or changed, or failed the last time, on all sites at once. */
  async rehearse(
    sites: readonly Site[],
    files: readonly string[],
    options: { readonly longestSeconds: number; readonly progress: (text: string) => void },
  ): Promise<void> {
    const queue = files.filter((file) => this.#isOpen(file, options.longestSeconds))
    if (queue.length > 0) options.progress(`rehearsal: ${queue.length} test files`)
    const work = async (site: Site): Promise<void> => {
      for (let part = queue.splice(0, batch); part.length > 0; part = queue.splice(0, batch)) {
        queue.unshift(...(await this.#batch(site, part, options.longestSeconds)))
        this.#save()
        options.progress(`rehearsal: ${queue.length} test files left`)
      }
    }
    await Promise.all(sites.map(work))
  }

  /** Whether a file has no result in its present form, or one that is worth another try. */
  #isOpen(file: string, longestSeconds: number): boolean {
    const entry = this.#tests.get(file)
    return (
      entry?.hash !== hashOf(file) ||
      entry.verdict === 'failed' ||
      (entry.verdict === 'long' && entry.seconds < longestSeconds)
    )
  }

  /** @returns files that did not run, because one before them took too long */
  async #batch(site: Site, files: readonly string[], longestSeconds: number): Promise<string[]> {
    const witness = mkdtempSync(join(site.root, '.cache-witness-'))
    try {
      const limitSeconds = (): number => longestSeconds
      const results = await site.run({ files, bail: false, limitSeconds }, witness)
      for (const result of results) {
        const { file } = result
        // Coverage enlarges the figures that some tests measure: they get a second chance without it.
        const [last = result] =
          result.verdict === 'failed' ? await site.run({ files: [file], bail: false, limitSeconds }) : [result]
        const verdict = last.verdict === 'late' ? 'long' : last.verdict
        const ran = [...functionsRun(join(witness, encodeURIComponent(file)), site.root)].map((name) =>
          this.#index(name),
        )
        this.#tests.set(file, { hash: hashOf(file), seconds: last.seconds, verdict, ran })
      }
      const done = new Set(results.map(({ file }) => file))
      return files.filter((file) => !done.has(file))
    } finally {
      rmSync(witness, { recursive: true, force: true })
    }
  }

  /** Test files that pass without a mutant and run the function, of those given. */
  usable(path: string, within: string, files: Iterable<string>): Usable[] {
    const wanted = this.#functions.get(`${path}#${within}`)
    return [...files].flatMap((file) => {
      const entry = this.#tests.get(file)
      if (entry?.verdict !== 'passed' || wanted === undefined || !entry.ran.includes(wanted)) return []
      return [{ file, seconds: entry.seconds }]
    })
  }

  /** Files, of those given, that do not pass without a mutant, or take too long. */
  useless(verdict: 'failed' | 'long', files: Iterable<string>): string[] {
    return [...files].filter((file) => this.#tests.get(file)?.verdict === verdict).sort()
  }

  #index(name: string): number {
    const index = this.#functions.get(name) ?? this.#functions.size
    this.#functions.set(name, index)
    return index
  }

  #save(): void {
    const stored: Stored = { functions: [...this.#functions.keys()], tests: Object.fromEntries(this.#tests) }
    mkdirSync(dirname(store), { recursive: true })
    writeFileSync(store, JSON.stringify(stored))
  }
}

/** V8's counts (Profiler.takePreciseCoverage), as far as they are used. */
interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly count: number }[]
    }[]
  }[]
}

/** `path#name` of each function that ran in one of the processes; `path#` of each module that was loaded. */
function functionsRun(directory: string, root: string): Set<string> {
  const ran = new Set<string>()
  if (!existsSync(directory)) return ran
  const prefixes = folders.map((folder) => `file://${root}/src/${folder}/`)
  for (const name of readdirSync(directory)) {
    for (const { url, functions } of coverageIn(join(directory, name)).result) {
      if (!prefixes.some((prefix) => url.startsWith(prefix))) continue
      const path = url.slice(`file://${root}/`.length)
      ran.add(`${path}#`)
      for (const { functionName, ranges } of functions)
        if ((ranges[0]?.count ?? 0) > 0) ran.add(`${path}#${functionName}`)
    }
  }
  return ran
}

/** A process that was killed as it wrote leaves half a file. */
function coverageIn(file: string): Coverage {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Coverage
  } catch {
    return { result: [] }
  }
}
