import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Removals } from '../../src/auth/removals.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { unavailable } from '../../src/errors.ts'
import { createLogTo } from '../../src/log.ts'
import { createWorld, removed, runJob, service, type World } from './world.ts'

/** Rows of revoked tokens leave after the answer, together. */

describe('rows that wait for their removal', () => {
  const row = (id: string) => ({ id }) as TokenRow
  const waiting = (remove: (ids: string[]) => Promise<void>) => {
    let said = ''
    const log = createLogTo({ write: (line) => (said += line) }, 'info')
    const removals = new Removals((rows) => remove(rows.map(({ id }) => id)), log)
    return { removals, said: () => said }
  }

  test('leave together, in the order in which they came, each once, without being asked for', async () => {
    const taken: string[][] = []
    const { removals } = waiting(async (ids) => void taken.push(ids))
    for (const id of ['a', 'b', 'a', 'c']) removals.add(row(id))
    expect([removals.has('a'), removals.has('d')]).toEqual([true, false])
    while (removals.has('c')) await delay(10)
    expect(taken).toEqual([['a', 'b', 'c']])
    removals.add(row('d'))
    while (removals.has('d')) await delay(10)
    expect(taken).toEqual([['a', 'b', 'c'], ['d']])
  })

  test('leave when they fill a transaction, one of which is under way at a time', async () => {
    let [underWay, most] = [0, 0]
    const taken: number[] = []
    const { removals } = waiting(async (ids) => {
      most = Math.max(most, ++underWay)
      await delay(5)
      taken.push(ids.length)
      underWay--
    })
    for (let n = 0; n < 200; n++) removals.add(row(String(n)))
    await removals.done()
    expect(taken).toEqual([64, 64, 64, 8])
    expect(most).toBe(1)
  })

  test('are left to the expiry job when the database is out of reach, or behind', async () => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const { removals, said } = waiting(async () => over.then(() => Promise.reject(unavailable('busy'))))
    for (let n = 0; n < 2000; n++) removals.add(row(String(n)))
    expect([removals.has('1023'), removals.has('1024')]).toEqual([true, false])
    resolve()
    await removals.done()
    expect(removals.has('0')).toBe(false)
    expect(said()).toBe('')
  })

  test('do not keep others waiting when a removal fails, which is logged', async () => {
    const { removals, said } = waiting(async ([id]) => {
      if (id === 'bad') throw new Error('out of order')
    })
    removals.add(row('bad'))
    await removals.done()
    removals.add(row('good'))
    await removals.done()
    expect([removals.has('bad'), removals.has('good')]).toEqual([false, false])
    expect(said()).toContain('out of order')
  })
})

describe('a token whose revocation was answered', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld(2)
  }, 120_000)
  afterAll(() => world?.[Symbol.asyncDispose]())

  const states = async (ids: readonly string[]) =>
    (await world.sql('SELECT state FROM tokens WHERE id IN (?)', [ids])).map(({ state }) => state)

  test('works nowhere and is listed nowhere, though its row is still there', async () => {
    const { credential, row } = await world.node.tokens.create(service(null))
    expect(await world.nodes[1]?.tokens.lookup(credential)).toMatchObject({ id: row.id })
    await world.node.tokens.revoke(row.id)
    expect(await states([row.id])).toEqual(['revoked'])
    for (const { tokens } of world.nodes) {
      expect(await tokens.lookup(credential)).toBeUndefined()
      expect(await tokens.accessors('', 1000)).not.toContain(row.accessor)
    }
    // As one that is gone, where it was revoked; another worker revokes it again.
    const { tokens } = world.node
    expect([await tokens.idOf(credential), await tokens.idOfAccessor(row.accessor)]).toEqual([undefined, undefined])
    expect(await tokens.idAt(row.path, row.id)).toBeUndefined()
    await world.nodes[1]?.tokens.revoke(row.id)
    await removed(world)
    expect(await states([row.id])).toEqual([])
  })

  test('is removed with many others, beside revocations that go on and on both workers', async () => {
    const made = await Promise.all(Array.from({ length: 300 }, () => world.node.tokens.create(service(null))))
    const ids = made.map(({ row }) => row.id)
    const outcomes = async () => Number((await world.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
    const before = await outcomes()
    await Promise.all([...ids, ...ids].map((id, n) => world.nodes[n % 2]?.tokens.revoke(id)))
    await removed(world)
    expect(await states(ids)).toEqual([])
    const [one, other] = await Promise.all(world.nodes.map(({ tokens }) => tokens.count()))
    expect(one).toBe(other)
    expect(one).toBe(Number((await world.sql('SELECT COUNT(*) AS n FROM tokens'))[0]?.n))
    expect((await outcomes()) - before).toBeLessThan(300)
  })

  test('with a text that was chosen for it is removed before the answer', async () => {
    for (let round = 0; round < 3; round++) {
      const { row } = await world.node.tokens.create(service(null, { custom: 'chosen' }))
      await world.node.tokens.revoke(row.id)
      expect(await states([row.id])).toEqual([])
    }
  })

  test('is removed by the expiry job if its worker ended meanwhile', async () => {
    const { database, tokens } = world.node
    const { row } = await tokens.create(service(null))
    const ending = await world.join()
    await ending.tokens.revoke(row.id)
    await ending.database[Symbol.asyncDispose]()
    await ending.tokens.removeRevoked()
    expect(await states([row.id])).toEqual(['revoked'])
    world.clock.ahead += 60_000
    await runJob(database, tokens.expiry)
    expect(await states([row.id])).toEqual([])
  })
})
