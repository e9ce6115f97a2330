/**
 * `npm run storm`, under Node 24: a node of one worker under one attack after the other, and their cost, in one table.
 * The exit code is 1 when a limit was broken. docs/performance.md says how to read it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ownCheckout, StrongroomNode } from './bench/node.ts'
import { markdown } from './bench/table.ts'
import { authority } from './storm/authority.ts'
import { bodies } from './storm/bodies.ts'
import { connections } from './storm/connections.ts'
import { besiege, type Outcome } from './storm/siege.ts'
import { prepareTarget, type Target } from './storm/target.ts'

const usage = `npm run storm -- [options]
  --only WORDS    attacks with these words in their title; may be repeated
  --questions N   OCSP requests for unknown serial numbers (20000)
  --list          shows the titles, and attacks nothing`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    questions: { type: 'string', default: '20000' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const mostHealthMilliseconds = 250
const mostResidentBytes = 1024 * 2 ** 20
/** The two audit lines of a request without data. */
const linesBytes = 4096

const heads = [
  'attack',
  'sent',
  'answers',
  "health's worst ms",
  'workers replaced',
  'audit growth',
  'peak RSS',
  'broken',
]

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

const attacks = [...bodies, ...connections, ...authority(Number(options.questions))].filter(
  ({ title }) => options.only?.some((words) => title.includes(words)) ?? true,
)
if (options.help) console.log(usage)
else if (options.list) console.log(attacks.map(({ title }) => title).join('\n'))
else await storm()

async function storm(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-storm-'))
  try {
    const rows: string[][] = []
    await using node = await StrongroomNode.start({
      ...{ directory: join(directory, 'node'), profiles: undefined, checkout: ownCheckout, workers: 1 },
    })
    const auditFile = join(directory, 'node', 'state', 'audit', 'audit.log')
    const pem = await prepareTarget((method, path, body) => node.call(method, path, body), auditFile)
    const der = Buffer.from(pem.replace(/-----[A-Z ]+-----/g, ''), 'base64')
    const target: Target = { url: node.url, rootToken: node.rootToken, pid: node.pid, auditFile, authority: der }
    for (const attack of attacks) {
      console.error(attack.title)
      const outcome = await besiege(target, attack)
      const broken = brokenLimits(outcome)
      if (broken.length > 0) process.exitCode = 1
      rows.push(cells(attack.title, outcome, broken))
      console.error(rows.at(-1)?.join(' | '))
    }
    console.log(markdown(heads, rows))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Descriptions of the limits that an attack broke. */
function brokenLimits({ sent, health, workersReplaced, auditBytes, peakBytes }: Outcome): string[] {
  const found: [boolean, string][] = [
    [health.worst > mostHealthMilliseconds || health.failures.length > 0, 'health'],
    [workersReplaced > 0, 'workers'],
    [auditBytes > sent.bytes + sent.requests * linesBytes, 'audit'],
    [peakBytes > mostResidentBytes, 'memory'],
  ]
  return found.filter(([is]) => is).map(([, what]) => what)
}

function cells(title: string, outcome: Outcome, broken: readonly string[]): string[] {
  const { sent, health, workersReplaced, auditBytes, peakBytes } = outcome
  const answers = [...sent.answers].map(([status, count]) => (count === 1 ? status : `${count} × ${status}`)).join(', ')
  return [
    ...[title, megabytes(sent.bytes), answers, health.worst.toFixed(0), String(workersReplaced)],
    ...[megabytes(auditBytes), megabytes(peakBytes), broken.join(', ') || '–'],
  ]
}
