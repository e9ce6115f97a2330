import { drive } from '../changes/drive.ts'
import { median } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const policies = 1000
const writers = 30

/**
 * Policies written in parallel, as terraform apply does, into a set that is large already; any refusal ends the run.
 */
export async function writersOfPolicies(bench: PressureBench): Promise<string> {
  await using node = await startNode(bench)
  const write = async (name: string, n: number): Promise<void> => {
    const policy = `path "transit/encrypt/k${n}" { capabilities = ["update"] }`
    await node.call('POST', `sys/policies/acl/${name}`, { policy })
  }
  bench.progress(`making ${policies} policies`)
  const shares = Array.from({ length: 16 }, async (_, share) => {
    for (let n = share; n < policies; n += 16) await write(`p${n}`, n)
  })
  await Promise.all(shares)
  const runs = []
  for (let run = 1; run <= bench.pairs; run++) {
    bench.progress(`writers of policies: run ${run} of ${bench.pairs}`)
    runs.push(await drive((client, n) => write(`p${client}`, run * 100_000 + n), writers, bench.seconds))
  }
  const p99 = median(runs.map(({ p99Milliseconds }) => p99Milliseconds))
  const rate = median(runs.map(({ changesPerSecond }) => changesPerSecond))
  return `p99 ${p99.toFixed(0)} ms at ${rate.toFixed(0)} writes a second, none refused`
}
