import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RingCaches } from '../../src/engines/transit/ring/ringcaches.ts'
import { createSettings, Settings } from '../../src/engines/transit/ring/settings.ts'
import { keysTable } from '../../src/engines/transit/ring/tables.ts'
import { Metrics } from '../../src/metrics.ts'
import type { Mount } from '../../src/route.ts'
import type { Database } from '../../src/store/database.ts'
import { open } from '../store/support.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigrated } from '../support/template/migrated.ts'

let schema: TestDatabase
let database: Database
let settings: Settings
const metrics = new Metrics()
/** The number of entries in all caches of the database. */
const entries = (): number => {
  const series = metrics.snapshot().find(({ name }) => name === 'strongroom.cache.entries')
  return series?.kind === 'gauge' ? series.value : Number.NaN
}
beforeAll(async () => {
  schema = await createMigrated()
  database = await open(schema.url, { metrics })
  await database.start()
  settings = new Settings(database)
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
  await schema?.[Symbol.asyncDispose]()
})

async function newMount(): Promise<Mount> {
  const uuid = randomUUID()
  await database.transaction((tx) => createSettings(database, tx, uuid))
  return { uuid, path: `${uuid}/`, type: 'transit', config: {} }
}

/** Caches that find every ring, and count how often one is loaded. */
function counted(limit: number) {
  const loads = { count: 0 }
  const load = async () => {
    loads.count++
    return { key: {} as never, versions: new Map() }
  }
  return { loads, caches: new RingCaches({ database, settings, shared: { table: keysTable.name, limit, load } }) }
}

const names = Array.from({ length: 12 }, (_, index) => `key-${index}`)

describe('the cache of rings', () => {
  test('takes a new size when the engine is reloaded, and not before', async () => {
    const mount = await newMount()
    const { caches, loads } = counted(100)
    const useAll = async () => {
      const before = loads.count
      for (const name of names) await (await caches.of(mount)).get(`${mount.uuid}/${name}`)
      return loads.count - before
    }
    expect(await useAll()).toBe(names.length)
    expect(await useAll()).toBe(0)
    await settings.change(mount, { cacheSize: 10 })
    expect(await useAll()).toBe(0)
    caches.reload(mount)
    // Twelve keys in turn in ten places: each is evicted before it is used again.
    expect(await useAll()).toBe(names.length)
    expect(await useAll()).toBe(names.length)
    await settings.change(mount, { cacheSize: 20 })
    expect(await useAll()).toBe(names.length)
    caches.reload(mount)
    await useAll()
    expect(await useAll()).toBe(0)
  })

  test('keeps the most recently used', async () => {
    const mount = await newMount()
    await settings.change(mount, { cacheSize: 10 })
    const { caches, loads } = counted(100)
    const use = async (name: string) => (await caches.of(mount)).get(`${mount.uuid}/${name}`)
    for (const name of names.slice(0, 10)) await use(name)
    await use('key-0')
    await use('another')
    loads.count = 0
    await use('key-0')
    expect(loads.count).toBe(0)
    await use('key-1')
    expect(loads.count).toBe(1)
  })

  test('is never larger than the server lets it be, and one mount takes no place from another', async () => {
    const [mount, other] = [await newMount(), await newMount()]
    await settings.change(mount, { cacheSize: 1_000_000 })
    const { caches } = counted(10)
    for (const name of names) await (await caches.of(mount)).get(`${mount.uuid}/${name}`)
    expect((await caches.of(mount)).size).toBe(10)
    expect((await caches.of(other)).size).toBe(0)
  })

  test('of a removed mount is freed, and a late request does not fill it again', async () => {
    const [gone, standing] = [await newMount(), await newMount()]
    const { caches } = counted(100)
    for (const mount of [gone, standing]) await settings.change(mount, { cacheSize: 10 })
    const use = async (mount: Mount, name: string) => (await caches.of(mount)).get(`${mount.uuid}/${name}`)
    const [late] = [await caches.of(gone), await caches.of(standing)]
    const before = entries()
    for (const name of names.slice(0, 5)) for (const mount of [gone, standing]) await use(mount, name)
    expect(entries()).toBe(before + 10)
    caches.retain(new Set([standing.uuid]))
    expect(entries()).toBe(before + 5)
    expect(await late.get(`${gone.uuid}/key-0`)).toBeDefined()
    expect([late.size, entries()]).toEqual([0, before + 5])
    expect(late.peek(`${gone.uuid}/key-0`)).toBe(undefined)
    await use(gone, 'key-0')
    expect(entries()).toBe(before + 6)
    caches.retain(new Set([standing.uuid]))
    expect(entries()).toBe(before + 5)
    expect(await caches.of(standing)).toHaveProperty('size', 5)
  })
})
