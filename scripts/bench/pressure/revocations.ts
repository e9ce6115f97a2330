import { setTimeout as delay } from 'node:timers/promises'
import { issueMany } from '../authority/issued.ts'
import { drive } from '../changes/drive.ts'
import type { StrongroomNode } from '../node.ts'
import { prepared } from '../operations/certificates.ts'
import { median } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const keys = 50
const revocationsPerSecond = 100
const plaintext = Buffer.from('plain').toString('base64')

/** A kind of thing that is revoked. */
export interface Revocable {
  prepare(node: StrongroomNode): Promise<unknown>
  /** @returns names of so many new ones */
  make(node: StrongroomNode, count: number): Promise<string[]>
  revoke(node: StrongroomNode, name: string): Promise<unknown>
}

/** Tokens that encrypt nothing. */
export const tokens: Revocable = {
  prepare: async () => undefined,
  async make(node, count) {
    const made: string[] = []
    while (made.length < count) {
      const { auth } = await node.call('POST', 'auth/token/create', { policies: ['default'], ttl: '1h' })
      made.push((auth as { client_token: string }).client_token)
    }
    return made
  },
  revoke: (node, token) => node.call('POST', 'auth/token/revoke', { token }),
}

/** Certificates, each with a list that names it. */
export const issued: Revocable = {
  prepare: prepared,
  make: issueMany,
  revoke: (node, serial_number) => node.call('POST', 'pki/revoke', { serial_number }),
}

/** Cache misses of encrypts that revocations of something else cause: less those of as many revocations alone. */
export async function revocationsBesideEncrypts(bench: PressureBench, revocable: Revocable): Promise<string> {
  await using node = await startNode(bench)
  for (let key = 0; key < keys; key++) await node.call('POST', `transit/keys/k${key}`, {})
  await revocable.prepare(node)
  const encrypt = async (client: number, n: number): Promise<void> => {
    await node.call('POST', `transit/encrypt/k${(client + n) % keys}`, { plaintext })
  }
  const count = bench.seconds * revocationsPerSecond
  const shares: number[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`revocations: pair ${pair} of ${bench.pairs}`)
    await drive(encrypt, 4, 1)
    const [first, second] = [await revocable.make(node, count), await revocable.make(node, count)]
    const revoke = (names: readonly string[]) => atPace(names, (name) => revocable.revoke(node, name))
    const alone = await missesOf(node, () => revoke(first))
    let encrypts = 0
    const beside = await missesOf(node, async () => {
      const [driven] = await Promise.all([drive(encrypt, 4, bench.seconds), revoke(second)])
      encrypts = driven.changesPerSecond * bench.seconds
    })
    shares.push((100 * (beside - alone)) / encrypts)
  }
  return `${median(shares).toFixed(1)} misses more in a hundred encrypts`
}

async function atPace(names: readonly string[], revoke: (name: string) => Promise<unknown>): Promise<void> {
  const under: Promise<unknown>[] = []
  for (const name of names) {
    under.push(revoke(name))
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
