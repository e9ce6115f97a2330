import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { done, fresh, hello } from '../api/node.ts'
import { openSql, type Sql } from '../attack/sql.ts'
import { at, dataOf, useWorld } from './world.ts'

const world = useWorld()
/** How many transactions wait for a lock of another; asked within a tenth of a second it answers as before. */
const waiting = async (sql: Sql) =>
  Number((await sql.row('SELECT COUNT(*) AS n FROM information_schema.INNODB_LOCK_WAITS')).n)
const make = (path: string, name: string) => world.root.post(path, { type: 'managed_key', managed_key_name: name })

describe('one managed key', () => {
  test('serves several keys, versions and mounts, each of which verifies what another signed', async () => {
    const name = await world.managed(world.settingsOf())
    const mount = fresh('m')
    await done(world.root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    const paths = [`transit/keys/${fresh('k')}`, `transit/keys/${fresh('k')}`, `${mount}/keys/${fresh('k')}`]
    for (const path of paths) await done(make(path, name))
    for (const path of paths) await done(world.root.post(`${path}/rotate`, { managed_key_name: name }))
    const below = (path: string, verb: string) => path.replace('/keys/', `/${verb}/`)
    for (const path of paths) {
      for (const key_version of [1, 2]) {
        const signed = await done(world.root.post(below(path, 'sign'), { input: hello, key_version }))
        const signature = signed.string('data.signature')
        for (const other of paths) {
          const verified = await done(world.root.post(below(other, 'verify'), { input: hello, signature }))
          expect(dataOf(verified)).toEqual({ valid: true })
        }
      }
    }
  })

  test.each(['transit', 'pki'])(
    'is deleted or used, never both, when both are asked for at once in %s',
    async (engine) => {
      const outcomes = new Set<string>()
      for (let round = 0; round < 12; round++) {
        // A mount of pki has each key once, and would answer with that of an earlier round.
        const mount = fresh('m')
        await done(world.root.post(`sys/mounts/${mount}`, { type: engine }))
        const name = await world.managed(world.settingsOf())
        const using =
          engine === 'transit'
            ? make(`${mount}/keys/${fresh('k')}`, name)
            : world.root.post(`${mount}/keys/generate/kms`, { managed_key_name: name })
        // The key is used some ten milliseconds before that is stored.
        await delay(3 * round)
        const [used, deleted] = await Promise.all([using, world.root.delete(at(name))])
        outcomes.add(`${used.status} ${deleted.status}`)
      }
      for (const outcome of outcomes) expect(['200 400', '400 204']).toContain(outcome)
    },
  )

  test('is not deleted while a mount uses it that was made after the deletion had begun', async () => {
    const name = await world.managed(world.settingsOf())
    await using sql = await openSql(world.database.url)
    // Holds up the deletion alone: it finds the row by its name, and uses find it by its id.
    await sql.rows('START TRANSACTION')
    await sql.rows('SELECT name FROM managed_keys WHERE name = ? LOCK IN SHARE MODE', [name])
    const deleting = world.root.delete(at(name))
    while ((await waiting(sql)) === 0) await delay(150)
    const mount = fresh('m')
    await done(world.root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    await done(make(`${mount}/keys/k`, name))
    await sql.rows('COMMIT')
    const { status, text } = await deleting
    expect([status, text]).toEqual([400, expect.stringContaining(`${mount}/keys/k`)])
    await done(world.root.post(`${mount}/sign/k`, { input: hello }))
  })

  test('is deleted beside many others, more than there are connections to the database', async () => {
    const names = []
    for (let made = 0; made < 64; made++) names.push(await world.managed(world.settingsOf()))
    const replies = await Promise.all(names.map((name) => world.root.delete(at(name))))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([204]))
  })

  test('rotates a key that took the name of one of another type, though the worker remembers that one', async () => {
    const name = await world.managed(world.settingsOf())
    const path = `transit/keys/${fresh('k')}`
    await done(world.root.post(path))
    await done(world.root.post(`${path}/rotate`))
    await done(world.root.post(`${path}/config`, { deletion_allowed: true }))
    await done(world.root.delete(path))
    await done(make(path, name))
    const silent = await world.root.post(`${path}/rotate`)
    expect([silent.status, silent.text]).toEqual([400, expect.stringContaining('one of managed_key_name and')])
    await done(world.root.post(`${path}/rotate`, { managed_key_name: name }))
    const key = await done(world.root.get(path))
    expect(dataOf(key)).toMatchObject({ type: 'managed_key', latest_version: 2 })
  })
})
