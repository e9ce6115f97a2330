import { TypeCheck } from './compiles.ts'
import { loadSample, saveSample, sourceDigest } from './kept.ts'
import { Reach } from './reach.ts'
import { Rehearsal } from './rehearsal.ts'
import { keyOf, loadResults, type Result, type Results, type Settings, saveResults } from './results.ts'
import { type Candidate, candidatesIn, draw, folders, judge, type Sample } from './sample.ts'
import { attempt, type Test } from './trial/attempt.ts'
import { project, Site } from './trial/site.ts'

export interface HuntOptions {
  /** No mutant is begun later. */
  readonly minutes: number
  readonly jobs: number
  readonly progress: (text: string) => void
}

export interface Extent {
  readonly rehearseOnly: boolean
  /** Goes on with the results so far. */
  readonly resume: boolean
  /** Goes on, and tries survivors and undecided mutants again: tests may have been added. */
  readonly survivors: boolean
}

/** Somebody stopped the run. */
export class Stopped extends Error {}

/** One run: draws mutants, rehearses their tests, tries them. */
export class Hunt {
  readonly #settings: Settings
  readonly #options: HuntOptions
  readonly #reach = Reach.of(project)
  readonly #rehearsal = new Rehearsal()
  readonly #candidates: readonly Candidate[]
  readonly #source = sourceDigest()
  readonly #stopped = new AbortController()
  readonly #began = performance.now()
  #results: Result[] = []

  constructor(settings: Settings, options: HuntOptions) {
    const unknown = settings.only.find((folder) => !folders.some((known) => known === folder))
    if (unknown !== undefined) throw new Error(`--only ${unknown}: not one of ${folders.join(', ')}`)
    this.#settings = settings
    this.#options = options
    this.#candidates = candidatesIn(project, settings.only.length === 0 ? folders : settings.only)
  }

  stop(): void {
    this.#stopped.abort(new Stopped('stopped: --resume goes on'))
  }

  /** The sample, one line for each mutant. */
  list(): string {
    const { chosen, refused } = this.#draw()
    const lines = chosen.map(
      ({ path, line, operator, before, after }) => `${path}:${line} ${operator}: ${before} → ${after}`,
    )
    return `${lines.join('\n')}\n${this.#candidates.length} places, ${chosen.length} mutants, ${refused} refused by the type check`
  }

  /** @returns undefined after a mere rehearsal @throws Stopped; `resume` goes on then */
  async run(extent: Extent): Promise<Results | undefined> {
    const { progress, jobs } = this.#options
    const { chosen, refused } = this.#draw()
    progress(`${chosen.length} mutants; ${refused} more do not pass the type check`)
    const earlier = extent.resume || extent.survivors ? this.#earlier() : undefined
    this.#results = (earlier?.results ?? []).filter(({ status }) => !extent.survivors || status === 'killed')
    await using stack = new AsyncDisposableStack()
    const sites = await Promise.all(Array.from({ length: jobs }, () => Site.make(this.#stopped.signal)))
    for (const site of sites) stack.use(site)

    const files = new Set(chosen.flatMap(({ path }) => this.#testsOf(path).map(([file]) => file)))
    await this.#rehearsal.rehearse(sites, [...files], { longestSeconds: this.#settings.seconds, progress })
    const rehearsed = this.#minutes()
    if (extent.rehearseOnly) return undefined

    const tried = new Set(this.#results.map(keyOf))
    const queue = chosen.filter((candidate) => !tried.has(keyOf(candidate)))
    const summary = (): Results => ({
      ...{ settings: this.#settings, source: this.#source, drawn: chosen.length, refused, results: this.#results },
      found: Object.fromEntries(
        [...Map.groupBy(this.#candidates, ({ folder }) => folder)].map(([f, all]) => [f, all.length]),
      ),
      rehearsalMinutes: (earlier?.rehearsalMinutes ?? 0) + rehearsed,
      minutes: (earlier?.minutes ?? 0) + this.#minutes() - rehearsed,
      ...{ failing: this.#rehearsal.useless('failed', files), long: this.#rehearsal.useless('long', files) },
    })
    await Promise.all(sites.map((site) => this.#work(site, queue, () => saveResults(summary()))))
    await this.#control(sites)
    const results = summary()
    saveResults(results)
    return results
  }

  /** The last one, when nothing has changed since: the type check takes minutes. */
  #draw(): Sample {
    const kept = loadSample(this.#source, this.#settings)
    if (kept !== undefined) return kept
    using check = new TypeCheck(project, this.#reach)
    const sample = draw(
      this.#candidates,
      this.#settings,
      judge(project, (path, text) => check.passes(path, text)),
    )
    saveSample(this.#source, this.#settings, sample)
    return sample
  }

  #earlier(): Results | undefined {
    const earlier = loadResults()
    if (earlier === undefined) return undefined
    if (earlier.source !== this.#source || JSON.stringify(earlier.settings) !== JSON.stringify(this.#settings))
      throw new Error('.build/mutants.json is of another source, or of other options')
    return earlier
  }

  #minutes(): number {
    return (performance.now() - this.#began) / 60_000
  }

  /** Test files that lead to a file, with their distance. */
  #testsOf(path: string): [string, number][] {
    const { tests } = this.#settings
    return [...this.#reach.testsOf(path)].filter(
      ([file]) => tests.length === 0 || tests.some((beginning) => file.startsWith(beginning)),
    )
  }

  async #work(site: Site, queue: Candidate[], save: () => void): Promise<void> {
    for (let candidate = queue.shift(); candidate !== undefined; candidate = queue.shift()) {
      if (this.#minutes() > this.#options.minutes) return
      const { path, within, line, operator } = candidate
      const distances = new Map(this.#testsOf(path))
      const tests: Test[] = this.#rehearsal
        .usable(path, within, distances.keys())
        .map((test) => ({ ...test, distance: distances.get(test.file) ?? 0 }))
      const fate = await attempt(site, candidate, tests, this.#settings.seconds)
      this.#results.push({ ...candidate, ...fate })
      save()
      const by = fate.file === '' ? `${fate.ran} of ${fate.of} test files` : `${fate.file} ${fate.test}`
      this.#options.progress(
        `${this.#results.length}: ${fate.status} ${path}:${line} ${operator}, ${fate.seconds.toFixed(1)} s, ${by}; ${queue.length} left`,
      )
    }
  }

  /** Test files that killed must pass without a mutant now as well: else their kills prove nothing. */
  async #control(sites: readonly Site[]): Promise<void> {
    const queue = [...new Set(this.#results.filter(({ status }) => status === 'killed').map(({ file }) => file))]
    this.#options.progress(`control: ${queue.length} test files`)
    const failed = new Set<string>()
    const work = async (site: Site): Promise<void> => {
      for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
        const [result] = await site.run({ files: [file], bail: true, limitSeconds: () => 300 })
        if (result?.verdict !== 'passed') failed.add(file)
      }
    }
    await Promise.all(sites.map(work))
    this.#results = this.#results.map((result) =>
      result.status === 'killed' && failed.has(result.file)
        ? { ...result, status: 'undecided', reason: `fails without the mutant too: ${result.reason}` }
        : result,
    )
  }
}
