import { drive } from '../changes/drive.ts'
import type { StrongroomNode } from '../node.ts'
import { median } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

/** How long the slowest of a hundred new AES keys takes, alone and while four clients make rsa-4096 keys. */
export async function smallKeysBesideLarge(bench: PressureBench): Promise<string> {
  await using node = await startNode(bench)
  const [alone, beside]: [number[], number[]] = [[], []]
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`AES keys beside rsa-4096: pair ${pair} of ${bench.pairs}`)
    const made = creations(node, `aes-${pair}`, 'aes256-gcm96')
    alone.push((await drive(made, 1, bench.seconds)).p99Milliseconds)
    const large = drive(creations(node, `rsa-${pair}`, 'rsa-4096'), 4, 5 * bench.seconds)
    beside.push((await drive((client, n) => made(client, n + 1_000_000), 1, 4 * bench.seconds)).p99Milliseconds)
    await large
  }
  return `p99 of a new AES key: ${median(alone).toFixed(1)} ms alone, ${median(beside).toFixed(1)} ms beside`
}

const creations = (node: StrongroomNode, name: string, type: string) => async (client: number, n: number) =>
  void (await node.call('POST', `transit/keys/${name}-${client}-${n}`, { type }))
