import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { childrenOf, commandLine, decrypt, encrypt, until } from '../attack/nodes.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import type { Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { stateTexts } from '../turns/support/statetexts.ts'

/** A sealed node has no keys and no login, whatever the request, and only the unseal secret changes that. */

const softhsm = '/usr/lib/softhsm/libsofthsm2.so'
let shim: Shim
let server: TestServer
let ciphertext: string
beforeAll(async () => {
  shim = await createShim(softhsm)
  server = await startServer({ workers: 2, library: shim.library })
  ciphertext = await encrypt(server.client(), 'k', 'kept')
}, 120_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})

const workers = () => childrenOf(server.pid).filter((pid) => commandLine(pid).includes('/worker.ts'))
const guest = () => server.client('')
const wrong = () => randomBytes(32).toString('base64url')
const unseal = (key: string) => guest().call('PUT', 'sys/unseal', { key, reset: false, migrate: false })
/** Enough connections that each worker has some: they are handed out in turn. */
const fromAll = (ask: () => Promise<Reply>) => Promise.all(Array.from({ length: 8 }, ask))
const seal = async () => expect((await server.client().call('PUT', 'sys/seal')).status).toBe(204)
/** Retries when the node's share of tries is used up: a second later there is one again. */
async function open(): Promise<void> {
  // As `cat FILE` gives it.
  await until(async () => (await unseal(`${server.unsealSecret}\n`)).status === 200)
  for (const reply of await fromAll(() => decrypt(server.client(), 'k', ciphertext))) expect(reply.status).toBe(200)
}
/** Brings the node into the state that a test begins with. */
async function begin(state: 'sealed' | 'open'): Promise<void> {
  const { sealed } = (await guest().get('sys/seal-status')).body as { sealed: boolean }
  if (sealed !== (state === 'sealed')) await (sealed ? open() : seal())
}
/** Calls of a group from now on; the fault itself does nothing. */
function counting(groups: number): () => number {
  shim.set({ groups, rv: 0, times: 0 })
  return () => shim.read().counted
}

describe('sealing', () => {
  beforeEach(() => begin('open'))

  test('needs sudo, and a token at all', async () => {
    expect((await guest().post('sys/seal')).status).toBe(403)
    await server.client().post('sys/policies/acl/u', { policy: 'path "sys/*" { capabilities = ["update"] }' })
    const made = await server.client().post('auth/token/create', { policies: ['u'] })
    expect((await server.client(made.string('auth.client_token')).post('sys/seal')).status).toBe(403)
    expect((await guest().get('sys/seal-status')).body).toMatchObject({ sealed: false })
  })

  test('answers 204 when every worker has followed, and then nothing but the state is answered', async () => {
    const root = server.client()
    await seal()
    for (const ask of [
      () => decrypt(root, 'k', ciphertext),
      () => root.get('sys/mounts'),
      () => root.get('sys/seal'),
      () => root.post('sys/seal'),
      () => guest().get('auth/token/lookup-self'),
      () => root.get('sys/internal/ui/mounts'),
      () => root.get('nothing/../x'),
    ]) {
      for (const reply of await fromAll(ask)) {
        expect({ status: reply.status, body: reply.body }).toEqual({
          status: 503,
          body: { errors: ['Vault is sealed'] },
        })
      }
    }
    for (const reply of await fromAll(() => guest().get('sys/seal-status'))) {
      expect(reply.status).toBe(200)
      expect(reply.body).toMatchObject({ sealed: true, initialized: true, t: 1, n: 1, progress: 0 })
      expect(reply.body).not.toHaveProperty('cluster_id')
    }
    const health = await guest().get('sys/health')
    expect(health.status).toBe(503)
    expect(health.body).toMatchObject({ initialized: true, sealed: true, standby: false, hsm: 'closed' })
    expect(health.body).toMatchObject({ replication_dr_mode: 'unknown', replication_performance_mode: 'unknown' })
    expect((await guest().call('HEAD', 'sys/health?sealedcode=299')).status).toBe(299)
    expect((await guest().get('sys/init')).body).toEqual({ initialized: true })
    expect((await guest().get('sys/leader')).status).toBe(200)
  })

  test('leaves no worker registered with the database, for which writers of other nodes would wait', async () => {
    await using sql = await createConnection(server.database.url)
    const registered = async () => ((await sql.query('SELECT id FROM registrations'))[0] as unknown[]).length
    // A change condemns the registrations of processes that were killed together with their supervisor.
    const policy = 'path "sys/*" { capabilities = ["update"] }'
    expect((await server.client().post('sys/policies/acl/u', { policy })).status).toBe(204)
    await until(async () => (await registered()) === 2)
    await seal()
    // The worker that answered the request lets go of the database after its answer.
    await until(async () => (await registered()) === 0)
  })
})

describe('a sealed node', () => {
  beforeEach(() => begin('sealed'))

  test('tried 20 times by somebody without the secret, at once and in turn, never calls the token', async () => {
    const calls = counting(group.all)
    const { logins } = shim.read()
    const replies = await Promise.all(Array.from({ length: 10 }, () => unseal(wrong())))
    for (let time = 0; time < 10; time++) replies.push(await unseal(wrong()))
    for (const reply of replies) {
      expect([400, 429]).toContain(reply.status)
      if (reply.status === 400) expect(reply.body).toEqual({ errors: ['Unseal failed, invalid key'] })
    }
    expect(replies.filter(({ status }) => status === 429).length).toBeGreaterThan(0)
    expect({ calls: calls(), logins: shim.read().logins }).toEqual({ calls: 0, logins })
    expect((await guest().get('sys/seal-status')).body).toMatchObject({ sealed: true })
  })

  test('says 429 in words, with the time to wait', async () => {
    const replies = await Promise.all(Array.from({ length: 6 }, () => unseal(wrong())))
    const refused = replies.find(({ status }) => status === 429)
    expect(refused?.body).toEqual({ errors: ['this node takes 4 tries to unseal it in a second: try again in 1 s'] })
    expect(refused?.headers['retry-after']).toBe('1')
  })

  test('refuses what is no try before it counts as one', async () => {
    const ask = async (body: object) => (await guest().post('sys/unseal', body)).body
    expect(await ask({})).toEqual({
      errors: ["'key' must be specified in request body as JSON, or 'reset' set to true"],
    })
    expect(await ask({ key: 'x', migrate: true })).toHaveProperty('errors')
    expect(await ask({ reset: true })).toMatchObject({ sealed: true, progress: 0 })
  })

  test('stays so over killed workers and a restart, and none of them initialises the module', async () => {
    const calls = counting(group.all)
    const before = workers()
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await until(() => workers().filter((pid) => !before.includes(pid)).length === 2)
    await until(
      async () =>
        (
          await guest()
            .get('sys/seal-status')
            .catch(() => undefined)
        )?.status === 200,
    )
    for (const reply of await fromAll(() => server.client().get('sys/mounts'))) expect(reply.status).toBe(503)
    await server.stop()
    await server.start()
    expect((await guest().get('sys/seal-status')).body).toMatchObject({ sealed: true })
    expect(calls()).toBe(0)
  })

  test('does not open to somebody who writes a hash into the database', async () => {
    await using sql = await createConnection(server.database.url)
    const own = wrong()
    await sql.query('CREATE TABLE kept AS SELECT * FROM cluster')
    await sql.query('UPDATE cluster SET unseal_hash = UNHEX(SHA2(?, 256))', [own])
    await until(async () => (await unseal(own)).status === 503)
    expect((await unseal(server.unsealSecret)).status).not.toBe(200)
    await sql.query('REPLACE INTO cluster SELECT * FROM kept')
    expect((await guest().get('sys/seal-status')).body).toMatchObject({ sealed: true })
  })

  test('opens to the secret: the answer comes when every worker serves, over one login each', async () => {
    const { logins } = shim.read()
    await open()
    expect(shim.read().logins - logins).toBe(2)
    expect((await unseal('anything')).body).toMatchObject({ sealed: false, cluster_name: 'strongroom' })
  })
})

test('the secret is in no log and in no file of the node', () => {
  const { unsealSecret } = server
  expect(server.output().replace(/^unseal_secret:.*$/m, '')).not.toContain(unsealSecret)
  const configuration = readFileSync(server.configFile, 'latin1')
  for (const text of [configuration, ...stateTexts(server.stateDirectory)]) expect(text).not.toContain(unsealSecret)
})

test('sealing ends while requests are under way, and each of them is answered', async () => {
  await begin('open')
  const root = server.client()
  for (let round = 0; round < 2; round++) {
    const busy = Array.from({ length: 12 }, (_, n) => root.post(`transit/keys/r${round}${n}`, { type: 'rsa-2048' }))
    const [sealed, ...replies] = await Promise.all([root.post('sys/seal'), ...busy])
    expect(sealed?.status).toBe(204)
    for (const { status } of replies) expect([200, 503]).toContain(status)
    await open()
  }
}, 120_000)

test('a node that cannot reach its token stays sealed and says why', async () => {
  await begin('sealed')
  shim.set({ groups: group.login, rv: 0x30 })
  await until(async () => (await unseal(server.unsealSecret)).status === 503)
  expect((await guest().get('sys/seal-status')).body).toMatchObject({ sealed: true })
  shim.clear()
  await open()
})

describe('where the state directory cannot be written', () => {
  const refusal = 'this node is sealed, but its state directory cannot be written; a restart may unseal it'

  test('a seal is carried out, says so, and holds for workers that are replaced', async () => {
    await begin('open')
    const supervisor = server.pid
    renameSync(server.stateDirectory, `${server.stateDirectory}-away`)
    try {
      const reply = await server.client().call('PUT', 'sys/seal')
      expect([reply.status, reply.body]).toEqual([500, { errors: [refusal] }])
      const [first = 0, ...others] = workers()
      process.kill(first, 'SIGKILL')
      await until(() => workers().some((pid) => pid !== first && !others.includes(pid)))
      await until(async () => (await fromAll(() => guest().get('sys/health'))).every(({ status }) => status === 503))
    } finally {
      renameSync(`${server.stateDirectory}-away`, server.stateDirectory)
    }
    expect(server.pid).toBe(supervisor)
    await open()
  })

  test('an unseal is refused, and no worker stays open', async () => {
    await begin('sealed')
    const marker = join(server.stateDirectory, 'sealed')
    rmSync(marker)
    mkdirSync(marker)
    try {
      await until(async () => (await unseal(server.unsealSecret)).status === 500)
      await until(async () => (await fromAll(() => guest().get('sys/health'))).every(({ status }) => status === 503))
    } finally {
      rmdirSync(marker)
      writeFileSync(marker, '')
    }
    await open()
  })
})
