import { join } from 'node:path'
import { load } from './load.ts'
import type { Measuring } from './measure.ts'
import type { StrongroomNode } from './node.ts'
import type { Server } from './server.ts'
import { spread } from './statistics.ts'

/** The CPU that a file audit device adds to one request: pairs without and with it. */
export async function audited(node: StrongroomNode, server: Server, options: Measuring): Promise<string> {
  const device = { type: 'file', options: { file_path: join(node.auditDirectory, 'bench.log') } }
  const ratios: number[] = []
  for (let pair = 1; pair <= options.pairs; pair++) {
    options.progress(`audit: pair ${pair} of ${options.pairs}`)
    const off = await load(server, options.seconds, options.directory)
    await node.call('POST', 'sys/audit/bench', device)
    const on = await load(server, options.seconds, options.directory)
    await node.call('DELETE', 'sys/audit/bench')
    ratios.push(on.cpuMicrosecondsPerRequest / off.cpuMicrosecondsPerRequest)
  }
  const { median, lowerQuartile, upperQuartile } = spread(ratios)
  const percent = (ratio: number): string => `${(100 * (ratio - 1)).toFixed(0)} %`
  return `\na file audit device adds ${percent(median)} (${percent(lowerQuartile)} to ${percent(upperQuartile)}) CPU to an encrypt`
}
