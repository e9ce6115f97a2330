/**
 * `npm run bench`, under Node 24: raw calls into a token, minimal servers and Strongroom, measured in one run and next to
 * each other, in one table. docs/performance.md says how to read it. Nothing is asserted: times depend on the machine.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { audited } from './bench/audited.ts'
import { Beside } from './bench/beside.ts'
import { load } from './bench/load.ts'
import { measure, type Pair } from './bench/measure.ts'
import { StrongroomNode } from './bench/node.ts'
import { prepareRows, type Row } from './bench/rows.ts'
import { table } from './bench/table.ts'

const usage = `npm run bench -- [options]
  --pairs N       pairs of measurements for each row (15)
  --seconds S     length of each measurement (2)
  --only WORD     rows whose operation has this name: health encrypt decrypt hmac sign batch audit; may be repeated
  --million       afterwards a million encrypts, with the worker's memory on the way
  --profile DIR   V8 CPU profiles of supervisor and worker are written there at the end`

const { values: options } = parseArgs({
  options: {
    pairs: { type: 'string', default: '15' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', multiple: true },
    million: { type: 'boolean', default: false },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const pairs = Number(options.pairs)
const seconds = Number(options.seconds)
const wanted = (name: string): boolean => options.only?.includes(name) ?? true
const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const progress = (text: string): void => console.error(text)

if (options.help) console.log(usage)
else await bench()

async function bench(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'))
  const profiles = options.profile === undefined ? undefined : resolve(options.profile)
  if (profiles) mkdirSync(profiles, { recursive: true })
  try {
    progress('starting a node …')
    await using node = await StrongroomNode.start({ directory: join(directory, 'node'), profiles })
    await using beside = new Beside(join(directory, 'beside'))
    const rows = await prepareRows(node)
    const measuring = { beside, pairs, seconds, directory, progress }
    const results: { row: Row; pairs: Pair[] }[] = []
    for (const row of rows.filter(({ operation }) => wanted(operation))) {
      results.push({ row, pairs: await measure(row, node.under(row.request), measuring) })
    }
    const [cpu] = cpus()
    console.log(`\n${cpus().length} × ${cpu?.model.trim()}, Node ${process.version}, ${pairs} pairs of ${seconds} s\n`)
    console.log(table(results))
    const encrypt = rows.find(({ operation }) => operation === 'encrypt')
    if (encrypt && wanted('audit')) console.log(await audited(node, node.under(encrypt.request), measuring))
    console.log(`\nmemory of the worker: ${megabytes(node.workerBytes)}`)
    if (encrypt && options.million) await million(node, encrypt, directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function million(node: StrongroomNode, { request }: Row, directory: string): Promise<void> {
  const server = node.under(request)
  for (let served = 0, shown = 0; served < 1e6; ) {
    served += (await load(server, 5, directory)).requests
    if (served < shown && served < 1e6) continue
    shown += 100_000
    console.log(`after ${served} encrypts: ${megabytes(node.workerBytes)}`)
  }
}
