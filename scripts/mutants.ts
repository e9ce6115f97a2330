/**
 * `npm run mutants`, under Node 24: a sample of small faults in the source, each tried with the tests that execute it.
 * docs/mutants.md is its report and says how it is done.
 */
import { parseArgs } from 'node:util'
import { Hunt, Stopped } from './mutants/hunt.ts'
import { figures, survivorTable, writeReport } from './mutants/report.ts'
import { loadResults, type Settings } from './mutants/results.ts'
import { folders } from './mutants/sample.ts'

const usage = `npm run mutants -- [options]
  --count N       mutants (300)
  --seed TEXT     draws them (1)
  --seconds S     tests of a mutant, by their time without it (60)
  --minutes M     no mutant is begun later (90)
  --jobs N        copies of the project that work at once (2)
  --only FOLDER   ${folders.join(', ')}; may be repeated
  --tests PATH    only test files whose path begins so; may be repeated
  --rehearse      only measures the test files that are not measured yet
  --list          draws, and tries nothing
  --resume        goes on with .build/mutants.json
  --survivors     the same, and tries its survivors again
  --report        only writes docs/mutants.md from .build/mutants.json; a run with all folders and tests does so at its end`

const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    minutes: { type: 'string', default: '90' },
    jobs: { type: 'string', default: '2' },
    only: { type: 'string', multiple: true, default: [] },
    tests: { type: 'string', multiple: true, default: [] },
    rehearse: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const settings: Settings = {
  ...{ seed: options.seed, count: Number(options.count), seconds: Number(options.seconds) },
  ...{ only: options.only, tests: options.tests },
}

if (options.help) console.log(usage)
else if (options.report) report()
else await hunt()

function report(): void {
  const results = loadResults()
  if (results === undefined) throw new Error('there are no results yet')
  writeReport(results)
}

async function hunt(): Promise<void> {
  const progress = (text: string): void => console.error(text)
  const run = new Hunt(settings, { minutes: Number(options.minutes), jobs: Number(options.jobs), progress })
  if (options.list) return console.log(run.list())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => run.stop())
  try {
    const results = await run.run({ ...options, rehearseOnly: options.rehearse })
    if (results === undefined) return
    console.log(`${figures(results)}\n\n${survivorTable(results.results)}`)
    if (settings.only.length === 0 && settings.tests.length === 0) writeReport(results)
  } catch (error) {
    if (!(error instanceof Stopped)) throw error
    console.error(error.message)
    process.exitCode = 130
  }
}
