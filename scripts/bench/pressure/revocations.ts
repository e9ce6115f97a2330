import { setTimeout as delay } from 'node:timers/promises'
import { drive } from '../changes/drive.ts'
import type { StrongroomNode } from '../node.ts'
import { median } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const keys = 50
const revocationsPerSecond = 100
const plaintext = Buffer.from('plain').toString('base64')

/** Cache misses of encrypts that revocations cause, of tokens that encrypt nothing: less those of as many revocations alone. */
export async function revocationsBesideEncrypts(bench: PressureBench): Promise<string> {
  await using node = await startNode(bench)
  for (let key = 0; key < keys; key++) await node.call('POST', `transit/keys/k${key}`, {})
  const encrypt = async (client: number, n: number): Promise<void> => {
    await node.call('POST', `transit/encrypt/k${(client + n) % keys}`, { plaintext })
  }
  const count = bench.seconds * revocationsPerSecond
  const shares: number[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`revocations: pair ${pair} of ${bench.pairs}`)
    await drive(encrypt, 4, 1)
    const [first, second] = [await makeTokens(node, count), await makeTokens(node, count)]
    const alone = await missesOf(node, () => revoke(node, first))
    let encrypts = 0
    const beside = await missesOf(node, async () => {
      const [driven] = await Promise.all([drive(encrypt, 4, bench.seconds), revoke(node, second)])
      encrypts = driven.changesPerSecond * bench.seconds
    })
    shares.push((100 * (beside - alone)) / encrypts)
  }
  return `${median(shares).toFixed(1)} misses more in a hundred encrypts`
}

async function makeTokens(node: StrongroomNode, count: number): Promise<string[]> {
  const tokens: string[] = []
  while (tokens.length < count) {
    const { auth } = await node.call('POST', 'auth/token/create', { policies: ['default'], ttl: '1h' })
    tokens.push((auth as { client_token: string }).client_token)
  }
  return tokens
}

async function revoke(node: StrongroomNode, tokens: readonly string[]): Promise<void> {
  const under: Promise<unknown>[] = []
  for (const token of tokens) {
    under.push(node.call('POST', 'auth/token/revoke', { token }))
    await delay(1000 / revocationsPerSecond)
  }
  await Promise.all(under)
}

async function missesOf(node: StrongroomNode, work: () => Promise<void>): Promise<number> {
  const before = await misses(node)
  await work()
  return (await misses(node)) - before
}

async function misses(node: StrongroomNode): Promise<number> {
  const { Counters } = (await node.call('GET', 'sys/metrics')) as {
    Counters: { Name: string; Count: number; Sum: number }[]
  }
  return Counters.filter(({ Name }) => Name === 'vault.cache.miss').reduce((sum, { Sum }) => sum + Sum, 0)
}
