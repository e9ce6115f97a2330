import { fillCertificates } from '../bulk.ts'
import { load } from '../load.ts'
import type { StrongroomNode } from '../node.ts'
import { prepareRows } from '../rows.ts'
import type { Server } from '../server.ts'
import { median, spread } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const page = 100

/** The costs of one size of the table: CPU of an answer, in microseconds, and a start. */
interface Cost {
  readonly startMilliseconds: number
  readonly issue: number
  readonly list: number
}

/**
 * A start, certificates issued and stored, and pages of the list: beside a million stored certificates, and beside a
 * thousand.
 */
export async function manyCertificates(bench: PressureBench): Promise<string> {
  await using small = await sized(bench, 1000)
  await using large = await sized(bench, 1_000_000)
  const pairs: { small: Cost; large: Cost }[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`a million certificates: pair ${pair} of ${bench.pairs}`)
    const [first, second] = pair % 2 === 0 ? [large, small] : [small, large]
    const [one, other] = [await first.cost(), await second.cost()]
    pairs.push(pair % 2 === 0 ? { small: other, large: one } : { small: one, large: other })
  }
  const start = (side: 'small' | 'large') =>
    (median(pairs.map((pair) => pair[side].startMilliseconds)) / 1000).toFixed(2)
  const ratio = (of: (cost: Cost) => number) => {
    const { median, lowerQuartile, upperQuartile } = spread(pairs.map((pair) => of(pair.large) / of(pair.small)))
    return `${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`
  }
  const [issue, list] = [ratio((cost) => cost.issue), ratio((cost) => cost.list)]
  return `start ${start('large')} s (${start('small')} s beside a thousand); an issue ${issue}, a page of ${page} ${list} of its cost beside a thousand`
}

async function sized(bench: PressureBench, rows: number) {
  const node = await startNode(bench)
  const { request } = await (await prepareRows(node))('issue ec-256')
  bench.progress(`filling the table with ${rows} certificates`)
  await fillCertificates(node.database.url, await uuidOf(node), rows)
  const serial = (rows / 2).toString(16).padStart(40, '0').match(/../g)?.join('-')
  const path = `/v1/pki/certs?list=true&limit=${page}&after=${serial}`
  const list = { method: 'GET', path, headers: { 'X-Vault-Token': node.rootToken }, body: undefined }
  const warm = async (server: Server): Promise<number> => {
    await load(server, 2 * bench.seconds, bench.directory)
    return (await load(server, bench.seconds, bench.directory)).cpuMicrosecondsPerRequest
  }
  return {
    async cost(): Promise<Cost> {
      const startMilliseconds = await node.restart()
      return { startMilliseconds, issue: await warm(node.under(request)), list: await warm(node.under(list)) }
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  }
}

async function uuidOf(node: StrongroomNode): Promise<string> {
  const { data } = await node.call('GET', 'sys/mounts')
  return (data as Record<string, { uuid: string }>)['pki/']?.uuid ?? ''
}
