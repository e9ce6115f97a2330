import { expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import { base64, serving, until } from '../nodes.ts'
import { connectionsOf, openPinned, type Pinned } from '../pinned.ts'
import { openSql } from '../sql.ts'
import { verifyWhole } from '../writers.ts'

/**
 * Once raising a floor or trimming is acknowledged, no worker of any node opens ciphertexts of versions below it; once
 * a rotation is, no worker uses the version before for anything new. Meanwhile keys are used, rotated and trimmed.
 */

const rounds = 25
/** How many versions stay behind the latest. */
const kept = 3

/** The acknowledged state of one key so far. */
interface Key {
  readonly name: string
  latest: number
  floor: number
  /** The floor that is being asked for. */
  raising: number
  readonly made: Map<number, string>
}

/** Rotates, raises both minimum versions and trims, through one connection after the other. */
async function age(key: Key, pinned: readonly Pinned[]): Promise<void> {
  let turn = 0
  const ask = async (verb: string, body?: unknown): Promise<void> => {
    const by = pinned[turn++ % pinned.length]
    const reply = await by?.ask('POST', `transit/keys/${key.name}/${verb}`, body)
    expect(reply?.status, reply?.text).toBe(200)
  }
  for (let round = 0; round < rounds; round++) {
    await ask('rotate')
    key.latest++
    const floor = Math.max(1, key.latest - kept)
    key.raising = floor
    await ask('config', { min_decryption_version: floor, min_encryption_version: floor })
    key.floor = floor
    await ask('trim', { min_available_version: floor })
  }
}

/** Uses the key through one connection until `ended`. @returns successes that an acknowledged change had ruled out */
async function use(key: Key, by: Pinned, ended: () => boolean): Promise<string[]> {
  const wrong: string[] = []
  for (let turn = 0; !ended(); turn++) {
    const { latest, floor } = key
    const made = await by.ask('POST', `transit/encrypt/${key.name}`, { plaintext: base64('plain') })
    if (made.status !== 200 || made.version < latest)
      wrong.push(`encrypt after ${latest}: ${made.status} v${made.version}`)
    const text = /vault:v\d+:[^"]+/.exec(made.text)?.[0]
    if (text) key.made.set(made.version, text)
    const versions = [...key.made.keys()]
    const version = versions[turn % versions.length] ?? 0
    const ciphertext = key.made.get(version)
    const opened = await by.ask('POST', `transit/decrypt/${key.name}`, { ciphertext })
    if (opened.status === 200 && version < floor) wrong.push(`v${version} opened at a floor of ${floor}`)
    if (opened.status !== 200 && version >= key.raising)
      wrong.push(`v${version} refused at ${key.raising}: ${opened.text}`)
    if (opened.status >= 500) wrong.push(opened.text)
  }
  return wrong
}

async function race(servers: readonly TestServer[], connections: number): Promise<void> {
  const [first] = servers
  if (first === undefined) throw new Error('no server')
  const pinned = servers.flatMap(({ url, rootToken }) =>
    Array.from({ length: connections }, () => openPinned(url, rootToken)),
  )
  for (const one of pinned) expect((await one.ask('GET', 'sys/mounts')).status).toBe(200)
  for (const server of servers) {
    for (const pid of serving(server)) expect(connectionsOf(pid, server.url)).toBeGreaterThan(0)
  }
  const keys: Key[] = ['a', 'b'].map((name) => ({ name, latest: 1, floor: 1, raising: 1, made: new Map() }))
  for (const { name } of keys) await pinned[0]?.ask('POST', `transit/keys/${name}`)
  let aging = keys.length
  const aged = keys.map((key) => age(key, pinned).finally(() => aging--))
  const uses = keys.flatMap((key) => pinned.map((by) => use(key, by, () => aging === 0)))
  await Promise.all(aged)
  expect((await Promise.all(uses)).flat()).toEqual([])
  for (const { name, latest } of keys) {
    const { body } = await first.client().get(`transit/keys/${name}`)
    expect(body).toMatchObject({ data: { latest_version: latest, min_available_version: latest - kept } })
  }
  await using sql = await openSql(first.database.url)
  await verifyWhole(first.client(), sql)
  for (const one of pinned) one[Symbol.dispose]()
}

test('over the workers of a node nothing below an acknowledged floor is opened, and nothing old is made', async () => {
  await using server = await startServer({ workers: 2 })
  await race([server], 4)
}, 120_000)

test('over the nodes of a cluster too', async () => {
  await using first = await startServer()
  await using second = await startServer({ joins: first })
  await race([first, second], 2)
}, 120_000)

test('kill -9 of workers in the middle of rotating and trimming leaves every key whole, and its floor where it was', async () => {
  await using server = await startServer({ workers: 2 })
  const root = server.client()
  const floors = new Map<string, number>()
  let stopping = false
  const writer = async (name: string): Promise<void> => {
    await root.post(`transit/keys/${name}`)
    for (let latest = 1; !stopping; ) {
      const rotated = await root.post(`transit/keys/${name}/rotate`).catch(() => undefined)
      const read = await root.get(`transit/keys/${name}`).catch(() => undefined)
      if (rotated?.status !== 200 || read?.status !== 200) continue
      latest = (read.body as { data: { latest_version: number } }).data.latest_version
      const settings = { min_decryption_version: latest, min_encryption_version: latest }
      const raised = await root.post(`transit/keys/${name}/config`, settings).catch(() => undefined)
      if (raised?.status !== 200) continue
      const trimmed = await root
        .post(`transit/keys/${name}/trim`, { min_available_version: latest })
        .catch(() => undefined)
      if (trimmed?.status === 200) floors.set(name, latest)
    }
  }
  const writing = Array.from({ length: 6 }, (_, index) => writer(`key-${index}`))
  for (let death = 0; death < 3; death++) {
    const before = [...floors.values()].reduce((sum, floor) => sum + floor, 0)
    await until(() => [...floors.values()].reduce((sum, floor) => sum + floor, 0) > before + 12)
    const [worker = 0] = serving(server)
    process.kill(worker, 'SIGKILL')
    await until(() => serving(server).filter((pid) => pid !== worker).length === 2)
  }
  stopping = true
  await Promise.all(writing)
  expect(floors.size).toBe(6)
  for (const [name, floor] of floors) {
    const { data } = (await root.get(`transit/keys/${name}`)).body as { data: { min_available_version: number } }
    expect(data.min_available_version, name).toBeGreaterThanOrEqual(floor)
  }
  await using sql = await openSql(server.database.url)
  await verifyWhole(root, sql)
}, 120_000)
