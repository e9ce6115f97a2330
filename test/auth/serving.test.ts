import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** Tokens as clients meet them: a node of two workers, every call a connection of its own, so that both serve. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  const hash = 'path "transit/hash" { capabilities = ["update"] }'
  const create = 'path "auth/token/create" { capabilities = ["update"] }'
  await done(server.client().post('sys/policies/acl/hash', { policy: hash }))
  await done(server.client().post('sys/policies/acl/maker', { policy: `${create} ${hash}` }))
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

async function done(asked: Promise<Reply>): Promise<Reply> {
  const reply = await asked
  if (reply.status >= 300) throw new Error(`${reply.status} ${reply.text}`)
  return reply
}
async function create(body: object = {}, path = 'auth/token/create') {
  const reply = await done(server.client().post(path, { policies: ['hash'], ...body }))
  return { token: reply.string('auth.client_token'), accessor: reply.string('auth.accessor') }
}
const use = (token: string) => server.client(token).post('transit/hash', { input: 'aGVsbG8=' })
const forbidden = { status: 403, body: { errors: ['permission denied'] } }
const shown = ({ status, body }: Reply) => ({ status, body })

async function sql(statement: string, values: unknown[] = []): Promise<RowDataPacket[]> {
  const connection = await createConnection(server.database.url)
  const [rows] = await connection.query<RowDataPacket[]>(statement, values).finally(() => connection.end())
  return rows
}
const rowOf = async (accessor: string) => (await sql('SELECT * FROM tokens WHERE accessor = ?', [accessor]))[0]

/** A token that was revoked is removed soon after. */
async function endedOf(accessor: string): Promise<void> {
  expect((await rowOf(accessor))?.state ?? 'revoked').toBe('revoked')
  await until(async () => (await rowOf(accessor)) === undefined)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(200)
}

test.each([1, 10, 49])('of 50 requests at once over two workers exactly %i succeed', async (uses) => {
  const { token, accessor } = await create({ num_uses: uses })
  const replies = await Promise.all(Array.from({ length: 50 }, () => use(token)))
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(uses)
  for (const reply of replies.filter(({ status }) => status !== 200)) expect(shown(reply)).toEqual(forbidden)
  // The token was revoked before its last request was answered.
  await endedOf(accessor)
})

test('a refused request counts, a look at the health does not', async () => {
  const { token } = await create({ num_uses: 2 })
  const client = server.client(token)
  expect((await client.get('sys/health')).status).toBe(200)
  expect((await client.get('sys/internal/ui/mounts')).status).toBe(200)
  expect((await client.get('sys/mounts')).status).toBe(403)
  expect((await client.get('auth/token/lookup-self')).body).toMatchObject({ data: { num_uses: 0, id: token } })
  expect(shown(await use(token))).toEqual(forbidden)
})

test('a last use that is refused still removes the token', async () => {
  const { token, accessor } = await create({ num_uses: 1 })
  const reply = await server.client(token).get('sys/mounts')
  expect(reply.status).toBe(403)
  expect(reply.text).toContain('sys/mounts')
  await endedOf(accessor)
})

test('uses are counted across a restart, and kill -9 restores none', async () => {
  const { token } = await create({ num_uses: 4 })
  expect((await use(token)).status).toBe(200)
  await server.stop()
  await server.start()
  expect((await use(token)).status).toBe(200)
  await server.kill()
  await server.start()
  expect((await use(token)).status).toBe(200)
  expect((await use(token)).status).toBe(200)
  expect(shown(await use(token))).toEqual(forbidden)
})

test('a revoked token and its children are refused by every worker from the answer on', async () => {
  for (let round = 0; round < 5; round++) {
    const parent = await create({ policies: ['maker'] })
    const child = (await done(server.client(parent.token).post('auth/token/create'))).string('auth.client_token')
    const warm = await Promise.all(Array.from({ length: 8 }, () => Promise.all([use(parent.token), use(child)])))
    for (const reply of warm.flat()) expect(reply.status).toBe(200)
    let answered = false
    const users = [parent.token, child].map(async (token) => {
      for (let after = 0; after < 10; ) {
        const late = answered
        const reply = await use(token)
        if (late) {
          after++
          expect(shown(reply)).toEqual(forbidden)
        }
      }
    })
    await done(server.client().post('auth/token/revoke', { token: parent.token }))
    answered = true
    await Promise.all(users)
  }
})

test('children made while their parent is revoked do not work, and leave no row', async () => {
  const parent = await create({ policies: ['maker'] })
  const births = Array.from({ length: 30 }, () => server.client(parent.token).post('auth/token/create'))
  await Promise.all(births.slice(0, 3))
  await done(server.client().post('auth/token/revoke-accessor', { accessor: parent.accessor }))
  for (const reply of await Promise.all(births)) {
    if (reply.status !== 200) expect(shown(reply)).toEqual(forbidden)
    else expect(shown(await use(reply.string('auth.client_token')))).toEqual(forbidden)
    if (reply.status === 200) expect(await rowOf(reply.string('auth.accessor'))).toBeUndefined()
  }
})

test('the job removes tokens that have ended, on a node that was restarted meanwhile too', async () => {
  const [before, kept] = [await create({ ttl: 1 }), await create({ ttl: 3600 })]
  const spent = await create({ num_uses: 1 })
  await server.stop()
  await delay(1100)
  await server.start()
  await until(async () => (await rowOf(before.accessor)) === undefined)
  expect(await rowOf(kept.accessor)).toBeDefined()
  expect(await rowOf(spent.accessor)).toBeDefined()
})

test('a node that is stopped removes the revoked tokens first', async () => {
  const made = await Promise.all(Array.from({ length: 20 }, () => create()))
  await Promise.all(made.map(({ accessor }) => done(server.client().post('auth/token/revoke-accessor', { accessor }))))
  await server.stop()
  const accessors = made.map(({ accessor }) => accessor)
  expect(await sql('SELECT state FROM tokens WHERE accessor IN (?)', [accessors])).toEqual([])
  expect(server.output()).not.toContain('could not be removed')
  await server.start()
})

test('sudo paths name the missing capability, and answer a caller who has it', async () => {
  const rules = 'path "auth/token/*" { capabilities = ["update", "list"] }'
  await done(server.client().post('sys/policies/acl/clerk', { policy: rules }))
  const { token } = await create({ policies: ['clerk'] })
  const client = server.client(token)
  for (const reply of [
    await client.list('auth/token/accessors'),
    await client.post('auth/token/revoke-orphan', { token }),
  ]) {
    expect(reply.status).toBe(403)
    expect(reply.text).toContain('does not grant \\"sudo\\"')
  }
  const { accessor } = await create({}, 'auth/token/create-orphan')
  const { body } = await server.client().list('auth/token/accessors')
  expect((body as { data: { keys: string[] } }).data.keys).toContain(accessor)
})

test('tidy answers 202 with a warning, and removes orphaned rows', async () => {
  const parent = await create({ policies: ['maker'] })
  const child = (await done(server.client(parent.token).post('auth/token/create'))).string('auth.accessor')
  await sql('DELETE FROM tokens WHERE accessor = ?', [parent.accessor])
  const reply = await server.client().post('auth/token/tidy')
  expect(reply.status).toBe(202)
  expect(reply.body).toMatchObject({ data: null, warnings: [expect.stringContaining('Tidy operation successfully')] })
  await until(async () => (await rowOf(child)) === undefined)
})

test.each([
  ['num_uses = 100', { num_uses: 2 }, [500]],
  ['num_uses = 0', { num_uses: 2 }, [500]],
  ['expires_at = expires_at + 1000', {}, [200, 500]],
  ['expires_at = NULL', {}, [200, 500]],
])('%s written into the database makes a token work nowhere but where it is known', async (change, body, known) => {
  const { token, accessor } = await create(body)
  await sql(`UPDATE tokens SET ${change} WHERE accessor = ?`, [accessor])
  for (let n = 0; n < 4; n++) expect(known).toContain((await use(token)).status)
  await server.stop()
  await server.start()
  expect((await use(token)).status).toBe(500)
  await sql('DELETE FROM tokens WHERE accessor = ?', [accessor])
})

test('sys/leases answers on a node that has no leases but those of tokens', async () => {
  const client = server.client()
  expect((await client.list('sys/leases/lookup')).body).toMatchObject({ data: { keys: ['auth/'] } })
  expect((await client.list('sys/leases/lookup/pki/issue')).status).toBe(404)
  expect(shown(await client.post('sys/leases/lookup', { lease_id: 'pki/issue/a/b' }))).toEqual({
    status: 400,
    body: { errors: ['invalid lease'] },
  })
  expect((await client.call('PUT', 'sys/leases/revoke-prefix/pki', { sync: false })).status).toBe(204)
  expect((await client.post('sys/leases/revoke', { lease_id: 'pki/issue/a/b' })).status).toBe(204)
  expect((await client.post('sys/leases/tidy')).status).toBe(202)
})
