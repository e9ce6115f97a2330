import { setTimeout as delay } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Removals } from '../../src/auth/removals.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { unavailable } from '../../src/errors.ts'
import { createLogTo } from '../../src/log.ts'
import { createWorld, removed, runJob, service, tokensWith, type World } from './world.ts'

/** Rows of revoked tokens leave after the answer, together. */

describe('rows that wait for their removal', () => {
  const row = (id: string) => ({ id }) as TokenRow
  const waiting = (remove: (id: string) => Promise<void>) => {
    let said = ''
    const log = createLogTo({ write: (line) => (said += line) }, 'info')
    const removals = new Removals(({ id }) => remove(id), log)
    return { removals, said: () => said }
  }
  /** Removals that end when they are told to. */
  const held = () => {
    const taken: string[] = []
    let end = () => {}
    const made = waiting((id) => {
      taken.push(id)
      const { promise, resolve } = Promise.withResolvers<void>()
      const others = end
      end = () => {
        others()
        resolve()
      }
      return promise
    })
    return { ...made, taken, end: () => end() }
  }

  test('leave together, in the order in which they came, each once, without being asked for', async () => {
    const { removals, taken, end } = held()
    for (const id of ['a', 'b', 'a', 'c']) removals.add(row(id))
    expect([removals.has('a'), removals.has('d')]).toEqual([true, false])
    while (taken.length === 0) await delay(10)
    expect(taken).toEqual(['a', 'b', 'c'])
    end()
    while (removals.has('c')) await delay(10)
    removals.add(row('d'))
    while (!taken.includes('d')) await delay(10)
    end()
    await removals.done()
    expect(taken).toEqual(['a', 'b', 'c', 'd'])
  })

  test('leave when there are enough of them, at most 64 at a time', async () => {
    let [underWay, most] = [0, 0]
    const { removals } = waiting(async () => {
      most = Math.max(most, ++underWay)
      await delay(5)
      underWay--
    })
    for (let n = 0; n < 200; n++) removals.add(row(String(n)))
    await removals.done()
    expect(most).toBe(64)
    expect(removals.has('199')).toBe(false)
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
    const { removals, said } = waiting(async (id) => {
      if (id === 'bad') throw new Error('out of order')
    })
    for (const id of ['bad', 'good']) removals.add(row(id))
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

  const expire = () => {
    world.clock.ahead += 60_000
    return runJob(world.node.database, world.node.tokens.expiry)
  }
  const outcomes = async () => Number((await world.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
  const many = async (count: number) => {
    const made = await Promise.all(Array.from({ length: count }, () => world.node.tokens.create(service(null))))
    return made.map(({ row }) => row.id).sort()
  }

  test('is removed with others, by few transactions', async () => {
    const ids = await many(60)
    const before = await outcomes()
    for (const id of ids) await world.node.tokens.revoke(id)
    await removed(world)
    expect(await states(ids)).toEqual([])
    // Each revocation of its own is one.
    expect((await outcomes()) - before - ids.length).toBeLessThan(20)
  })

  test('is removed beside revocations that go on, of the same tokens on another worker', async () => {
    const ids = await many(300)
    await Promise.all([...ids, ...ids].map((id, n) => world.nodes[n % 2]?.tokens.revoke(id)))
    await removed(world)
    // Those that both workers held at the same moment are left.
    await expire()
    expect(await states(ids)).toEqual([])
    const [one, other] = await Promise.all(world.nodes.map(({ tokens }) => tokens.count()))
    expect(one).toBe(other)
    expect(one).toBe(Number((await world.sql('SELECT COUNT(*) AS n FROM tokens'))[0]?.n))
  })

  describe('while somebody holds its row', () => {
    let holder: Connection
    beforeEach(async () => {
      holder = await createConnection(world.url)
      await holder.query('START TRANSACTION')
    })
    afterEach(() => holder.end())
    const hold = (id: string) => holder.query('SELECT id FROM tokens WHERE id = ? FOR UPDATE', [id])

    test('keeps no other one, no second revocation and no count waiting', async () => {
      const { tokens } = world.node
      const other = world.nodes[1] ?? world.node
      // More than there are connections.
      const [free = '', ...held] = await many(40)
      await Promise.all([free, ...held].map((id) => tokens.revoke(id)))
      for (const id of held) await hold(id)
      while ((await states([free])).length > 0) await delay(10)
      await other.tokens.revoke(free)
      expect(await other.tokens.count()).toBe(await tokens.count())
      await removed(world)
      expect(await states(held)).toEqual(held.map(() => 'revoked'))
      // The expiry job removes them.
      await holder.query('ROLLBACK')
      await expire()
      expect(await states(held)).toEqual([])
    }, 8000)

    test('is revoked later, and keeps no other revocation waiting', async () => {
      const [held = '', ...free] = await many(41)
      await hold(held)
      const waiting = world.nodes.map(({ tokens }) => tokens.revoke(held))
      await delay(50)
      // Half of them are revoked by a worker that has not met them.
      await Promise.all(free.map((id, n) => world.nodes[n % 2]?.tokens.revoke(id)))
      expect(await states([held])).toEqual(['active'])
      await holder.query('ROLLBACK')
      await Promise.all(waiting)
      await removed(world)
      await expire()
      expect(await states([held, ...free])).toEqual([])
    }, 8000)

    test('is not said to be revoked if its text was chosen, as long as the text is not free', async () => {
      const { row } = await world.node.tokens.create(service(null, { custom: 'held' }))
      const holders = async () => {
        await hold(row.id)
        return new Set<string>()
      }
      const said = expect.stringMatching(/^the token is revoked; .* tried again$/)
      const revoking = tokensWith(world, { holders }).revoke(row.id)
      await expect(revoking).rejects.toMatchObject({ status: 503, message: said })
      expect(await world.nodes[1]?.tokens.lookup('held')).toBeUndefined()
      await holder.query('ROLLBACK')
      await world.node.tokens.revoke(row.id)
      await world.node.tokens.create(service(null, { custom: 'held' }))
    }, 60_000)
  })

  test('with a text that was chosen for it is removed before the answer', async () => {
    for (let round = 0; round < 3; round++) {
      const { row } = await world.node.tokens.create(service(null, { custom: 'chosen' }))
      await world.node.tokens.revoke(row.id)
      expect(await states([row.id])).toEqual([])
    }
  })

  test('is removed by the expiry job if its worker ended meanwhile', async () => {
    const { row } = await world.node.tokens.create(service(null))
    const ending = await world.join()
    await ending.tokens.revoke(row.id)
    await ending.database[Symbol.asyncDispose]()
    await ending.tokens.removeRevoked()
    expect(await states([row.id])).toEqual(['revoked'])
    await expire()
    expect(await states([row.id])).toEqual([])
  })
})
