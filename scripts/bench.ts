/**
 * `npm run bench`, under Node 24: raw calls into a token, minimal servers and Strongroom, measured in one run and next
 * to each other, in one table. docs/performance.md says how to read it. Nothing is asserted: times depend on the
 * machine.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { against } from './bench/against.ts'
import { audited } from './bench/audited.ts'
import { Beside } from './bench/beside.ts'
import { changes } from './bench/changes/list.ts'
import { measureChanges } from './bench/changes/measure.ts'
import { forgedTag } from './bench/forgedtag.ts'
import { layer } from './bench/layer.ts'
import { load } from './bench/load.ts'
import { measure, type Pair } from './bench/measure.ts'
import { ownCheckout, StrongroomNode } from './bench/node.ts'
import { compare } from './bench/openbao/compare.ts'
import { OpenBao } from './bench/openbao/server.ts'
import { operations } from './bench/operations.ts'
import { pressures } from './bench/pressure/list.ts'
import { prepareRows, type Row } from './bench/rows.ts'
import { slowSync } from './bench/slowsync.ts'
import { table } from './bench/table.ts'

const usage = `npm run bench -- [options]
  --pairs N       pairs of measurements for each row (7)
  --seconds S     length of each measurement, in whole seconds (1)
  --only WORDS    rows with this title or, when there is none, these words in it; may be repeated; audit: the audit device,
                  forged tag: its refusal, layer: src/hsm over pkcs11js
  --list          shows the titles of all rows, and measures nothing
  --changes       measures changes (keys, policies, tokens, mounts) beside the same rows in a plain transaction
  --nodes N       with --changes: another node shares database and token, and both have two workers and nudge each other (1)
  --slow-sync U   with --changes: whatever the database makes durable takes its disk U microseconds longer (0)
  --workers N     of each node (1; 2 with --nodes 2 or --openbao)
  --pressure      measures what work of one kind costs work of another, a line each
  --against DIR   compares with another checkout of the project, set up, instead of with minimal servers
  --openbao       compares with OpenBao on raft with keys in its memory, the same requests and changes
  --million       afterwards a million encrypts, with the worker's memory on the way
  --profile DIR   V8 CPU profiles of supervisor and worker are written there at the end`

const { values: options } = parseArgs({
  options: {
    pairs: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string', multiple: true },
    list: { type: 'boolean', default: false },
    changes: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1' },
    'slow-sync': { type: 'string', default: '0' },
    workers: { type: 'string' },
    pressure: { type: 'boolean', default: false },
    against: { type: 'string' },
    million: { type: 'boolean', default: false },
    openbao: { type: 'boolean', default: false },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const pairs = Number(options.pairs)
const seconds = Number(options.seconds)
const slower = Number(options['slow-sync'])
if (!(slower >= 0)) throw new Error('--slow-sync takes microseconds')
// OpenBao has no database that could be slowed: the comparison would be with another disk.
if (slower > 0 && (!options.changes || options.openbao)) throw new Error('--slow-sync goes with --changes alone')
const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const progress = (text: string): void => console.error(text)

const titles = Object.keys(operations)
const wanted = (title: string): boolean =>
  options.only?.some((words) => (titles.includes(words) ? title === words : title.includes(words))) ?? true

if (options.help) console.log(usage)
else if (options.list) console.log(titles.join('\n'))
else if (options.pressure) await pressure()
else await bench()

async function pressure(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'))
  try {
    for (const [title, measurePressure] of Object.entries(pressures)) {
      if (!(options.only?.some((words) => title.includes(words)) ?? true)) continue
      console.log(`- ${title}: ${await measurePressure({ directory, pairs, seconds, progress })}`)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** One node or two, with workers as asked for. */
async function startNodes(directory: string, profiles: string | undefined) {
  await using stack = new AsyncDisposableStack()
  const several = options.nodes === '2'
  const [first, second] = ['127.0.0.1:7801', '127.0.0.1:7802']
  const workers = Number(options.workers ?? (several || options.openbao ? 2 : 1))
  const nudge = several ? { nudge: { address: first, peers: [second] } } : {}
  const common = { profiles, checkout: ownCheckout, workers }
  const node = stack.use(await StrongroomNode.start({ ...common, directory: join(directory, 'node'), ...nudge }))
  if (several) {
    const peer = { directory: join(directory, 'second'), joins: node, nudge: { address: second, peers: [first] } }
    stack.use(await StrongroomNode.start({ ...common, ...peer }))
  }
  const moved = stack.move()
  return { node, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

async function bench(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'))
  const profiles = options.profile === undefined ? undefined : resolve(options.profile)
  if (profiles) mkdirSync(profiles, { recursive: true })
  try {
    if (slower > 0) slowSync(slower, directory)
    progress('starting a node …')
    await using nodes = await startNodes(directory, profiles)
    const { node } = nodes
    if (options.changes) {
      const some = Object.keys(changes).filter((title) => options.only?.some((words) => title.includes(words)) ?? true)
      console.log(await measureChanges({ node, titles: some, pairs, seconds, directory, progress }))
      return
    }
    if (options.openbao) {
      await using openBao = await OpenBao.start(join(directory, 'openbao'))
      const asked = (title: string) => options.only?.some((words) => title.includes(words)) ?? true
      console.log(await compare({ strongroom: node, openBao, wanted: asked, pairs, seconds, directory, progress }))
      return
    }
    if (options.against !== undefined) {
      const checkout = resolve(options.against)
      console.log(await against({ checkout, node, titles: titles.filter(wanted), pairs, seconds, directory, progress }))
      return
    }
    await using beside = new Beside(join(directory, 'beside'))
    const rowOf = await prepareRows(node)
    const measuring = { beside, pairs, seconds, directory, progress }
    const results: { row: Row; pairs: Pair[] }[] = []
    for (const title of titles.filter(wanted)) {
      const row = await rowOf(title)
      results.push({ row, pairs: await measure(row, node.under(row.request), measuring) })
    }
    const [cpu] = cpus()
    console.log(`\n${cpus().length} × ${cpu?.model.trim()}, Node ${process.version}, ${pairs} pairs of ${seconds} s\n`)
    console.log(table(results))
    const encrypt = await rowOf('encrypt 64 B')
    if (wanted('audit')) console.log(await audited(node, node.under(encrypt.request), measuring))
    if (wanted('forged tag')) console.log(await forgedTag(node, (await rowOf('decrypt 64 B')).request, measuring))
    if (wanted('layer')) console.log(await layer(join(directory, 'layer')))
    console.log(`\nmemory of the worker: ${megabytes(node.workerBytes)}`)
    if (options.million) await million(node, encrypt, directory)
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
