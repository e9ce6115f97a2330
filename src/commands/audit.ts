import { createReadStream } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import type { SeenChain, Verification } from '../audit/verify.ts'
import { readMoment } from '../clock/moment.ts'
import { systemClock } from '../clock.ts'
import { withCustody } from './custody.ts'
import { exitFailed } from './failure.ts'
import { withConfig, withForce } from './settings.ts'

const dayMilliseconds = 24 * 3_600_000

interface Options {
  readonly config?: string
  readonly force?: boolean
  /** Milliseconds. */
  readonly from?: number
}

/** `strongroom audit …`: the files of audit devices. */
export const auditCommand = (): Command =>
  new Command('audit').description('check the files of audit devices').addCommand(verify())

const verify = (): Command =>
  withForce(withConfig(new Command('verify')))
    .argument('<file...>', 'audit files of one device, the oldest first')
    .description('check that no line of these files was added, changed, moved or removed; exit code 1 when one was')
    .option('--from <time>', 'lines written before it may lie in older files (RFC 3339)', moment)
    .action(async (files: readonly string[], options: Options) => {
      await withCustody(options, async (_custody, database, { config: { audit } }) => {
        const [{ ChainHeads }, { Verification }] = await Promise.all([
          import('../audit/heads.ts'),
          import('../audit/verify.ts'),
        ])
        const heads = new ChainHeads({ database, clock: systemClock })
        const verification = new Verification((device) => heads.of(device))
        for (const file of files) {
          let number = 0
          for await (const line of linesOf(file)) await verification.line(line, `${file}:${++number}`)
        }
        report(verification, options.from, systemClock.wall() - audit.headRetentionDays * dayMilliseconds)
      })
    })

/** @param keptSince the sealed heads of chains that ended later are certainly still there */
function report(verification: Verification, from: number | undefined, keptSince: number): void {
  for (const chain of verification.chains.values()) console.log(described(chain))
  const { torn } = verification
  if (torn > 0) console.log(`${torn} lines are no entries: a full disk cuts lines off, and their requests were refused`)
  const unsealed = verification.unsealed(keptSince).length
  if (unsealed > 0)
    console.log(
      `${unsealed} chains ended before ${new Date(keptSince).toISOString()}, and their sealed heads are gone:`,
    )
  if (unsealed > 0) console.log('a truncated or forged end of these cannot be detected')
  const problems = verification.problems(from, keptSince)
  for (const problem of problems) console.error(problem)
  console.log(problems.length === 0 ? 'unbroken' : `${problems.length} problems`)
  if (problems.length > 0) process.exitCode = exitFailed
}

function described({ names, lines, first, last, dropped }: SeenChain): string {
  const lost = dropped > 0 ? `, ${dropped} that the device could not take` : ''
  return `${names.node} ${names.incarnation}: ${lines} lines${lost}, ${first.time} to ${last.time}`
}

/** Split at newlines only: readline would also split at separators that JSON text may contain. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  yield rest
}

function moment(text: string): number {
  const time = readMoment(text)
  if (time === undefined) throw new InvalidArgumentError('It must be a time like 2026-11-21T10:00:00Z.')
  return time
}
