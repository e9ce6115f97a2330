import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createShim, group } from '../hsm/support/fault.ts'
import { fetchAlone, until } from '../supervisor/node.ts'
import { start, strongroom } from './cli.ts'
import { createSite, type Site } from './site.ts'

let site: Site
let made: Record<string, string>

beforeAll(async () => {
  site = await createSite()
  const { code, stdout, stderr } = await strongroom(['init', '--config', site.file, '--json'])
  expect(code, stderr).toBe(0)
  made = JSON.parse(stdout)
})
afterAll(() => site[Symbol.asyncDispose]())

/** The children of a process. */
const childrenOf = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

describe('init', () => {
  test('prints cluster, root token and unseal secret once, and says so when there is nothing to do', async () => {
    expect(made).toEqual({
      cluster_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      root_token: expect.stringMatching(/^hvs\./),
      unseal_secret: expect.stringMatching(/^[0-9A-Za-z]{43}$/),
    })
    const again = await strongroom(['init', '--config', site.file])
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('initialised already')
    expect(await strongroom(['init', '--config', site.file, '--if-needed'])).toMatchObject({ code: 0, stdout: '' })
  })

  test('takes a root token from outside and does not repeat it', async () => {
    await using other = await createSite()
    const environment = { STRONGROOM_ROOT_TOKEN: 'a-root-token-of-my-own' }
    const { code, stdout, stderr } = await strongroom(['init', '--config', other.file], environment)
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(/^cluster_id: .*\nunseal_secret: .*\n$/)
    expect(stdout + stderr).not.toContain('a-root-token')
  })

  test('prints the secrets, and a warning beside them, when something fails after everything was made', async () => {
    await using other = await createSite()
    expect((await strongroom(['migrate', '--config', other.file])).code).toBe(0)
    const connection = await createConnection(other.database.url)
    await connection
      .query(
        "CREATE TRIGGER ending AFTER UPDATE ON cluster FOR EACH ROW IF NEW.state = 'ready' THEN DELETE FROM heads; END IF",
      )
      .finally(() => connection.end())
    const { code, stdout, stderr } = await strongroom(['init', '--config', other.file, '--json'])
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      cluster_id: expect.any(String),
      root_token: expect.stringMatching(/^hvs\./),
      unseal_secret: expect.stringMatching(/^[0-9A-Za-z]{43}$/),
    })
    expect(stderr).toMatch(/^warning: the cluster is made; afterwards something failed: the head of the set of KEKs/m)
  })

  test("makes the KEKs from custodians' files, and refuses too few or equal ones before anything is made", async () => {
    await using other = await createSite()
    const files = ['a', 'b'].map((name) => join(other.directory, name))
    using shim = await createShim(other.token.library)
    other.configure({
      pkcs11: { library: shim.library, token: { label: other.token.label }, pin: { file: other.pinFile } },
    })
    shim.set({ groups: group.random, times: 0 })
    for (const [index, file] of files.entries()) {
      writeFileSync(file, (await strongroom(['kek', 'component', '--config', other.file])).stdout)
      // One call of C_GenerateRandom for the component of each KEK.
      expect(shim.read().counted).toBe(4 * (index + 1))
    }
    other.configure({})
    const [a = '', b = ''] = files
    const init = (...given: string[]) =>
      strongroom(['init', '--config', other.file, '--kek', 'components', '--component-file', ...given])
    expect(await init(a)).toMatchObject({ code: 1, stdout: '' })
    expect((await init(a, a)).stderr).toContain('already given')
    const { code, stderr } = await init(a, b)
    expect(code, stderr).toBe(0)
    const status = await strongroom(['kek', 'status', '--json', '--config', other.file])
    const { keks } = JSON.parse(status.stdout)
    expect(keks).toHaveLength(4)
    expect(keks.every((kek: { origin: string }) => kek.origin === 'components')).toBe(true)
  }, 60_000)
})

describe('a server', () => {
  test('serves what init made, loads the module in its worker alone, and ends with 0 on SIGTERM', async () => {
    const secret = site.token.pin
    await using server = start(['server'], {
      STRONGROOM_CONFIG: site.file,
      STRONGROOM_PKCS11_PIN: '{ environment: STRONGROOM_PIN }',
      STRONGROOM_PIN: secret,
    })
    const address = await server.ready()
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const [worker] = childrenOf(server.process.pid)
    expect(readFileSync(`/proc/${server.process.pid}/maps`, 'utf8')).not.toMatch(/softhsm|pkcs11/)
    expect(readFileSync(`/proc/${worker}/maps`, 'utf8')).toContain('libsofthsm2')
    expect(readFileSync(`/proc/${worker}/environ`, 'utf8')).not.toContain(secret)
    expect(readFileSync(`/proc/${worker}/cmdline`, 'utf8')).not.toContain(secret)
    expect(server.stderr()).not.toContain(secret)
    const status = await strongroom(['status', '--address', address])
    expect(status).toMatchObject({ code: 0, stderr: '' })
    expect(status.stdout).toMatch(/^sealed +false$/m)
    server.process.kill('SIGTERM')
    expect(await server.ended).toBe(0)
  })

  test('kept from its worker answers again by another', async () => {
    await using server = start(['server', '--config', site.file])
    const address = await server.ready()
    const [worker = 0] = childrenOf(server.process.pid)
    process.kill(worker, 'SIGKILL')
    const health = () =>
      fetchAlone(`${address}/v1/sys/health`).then(
        (reply) => reply.status,
        () => 0,
      )
    await until(
      'health is good again',
      async () => (await health()) === 200 && !childrenOf(server.process.pid).includes(worker),
    )
  })

  test('that was killed leaves a unix socket that the next one takes over', async () => {
    const path = join(site.directory, 'api.sock')
    const environment = { STRONGROOM_LISTEN: `unix:${path}` }
    await using first = start(['server', '--config', site.file], environment)
    expect(await first.ready()).toBe(`unix:${path}`)
    first.process.kill('SIGKILL')
    await first.ended
    await using second = start(['server', '--config', site.file], environment)
    expect(await second.ready()).toBe(`unix:${path}`)
    expect(await strongroom(['status', '--json', '--address', `unix:${path}`])).toMatchObject({ code: 0 })
    const elsewhere = { ...environment, STRONGROOM_STATE_DIRECTORY: join(site.directory, 'third') }
    await using third = start(['server', '--config', site.file], elsewhere)
    expect(await third.ended).toBe(1)
    expect(third.stderr()).toContain('EADDRINUSE')
  })

  test('without an initialised cluster says so and exits with 1', async () => {
    await using empty = await createSite()
    const { code, stdout, stderr } = await strongroom(['server', '--config', empty.file])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('the server cannot start')
    expect(stderr).toContain('run strongroom init')
    expect((await strongroom(['migrate', '--config', empty.file])).code).toBe(0)
    const migrated = await strongroom(['server', '--config', empty.file])
    expect(migrated).toMatchObject({ code: 1, stdout: '' })
    expect(migrated.stderr).toContain('run strongroom init')
  })

  test('on a schema of another version says what to do, and not that rows are damaged', async () => {
    await using connection = await createConnection({ uri: site.database.url, multipleStatements: true })
    const refusal = async () => {
      const { code, stdout, stderr } = await strongroom(['server', '--config', site.file])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).not.toContain('damaged')
      return stderr
    }
    // A newer program has added a column that its seals cover, or an older one none that this program reads.
    await connection.query('CREATE TABLE kept SELECT * FROM `schema`; UPDATE heads SET mac = REVERSE(mac)')
    await connection.query('UPDATE `schema` SET version = 99, min_reader = 99')
    expect(await refusal()).toContain('has version 99: it needs a program that knows version 99')
    await connection.query('UPDATE `schema` SET version = 21, min_reader = 21; ALTER TABLE heads DROP COLUMN trail')
    expect(await refusal()).toMatch(/has version 21: this program needs version \d+: run strongroom migrate/)
    await connection.query('ALTER TABLE heads ADD COLUMN trail TEXT; UPDATE heads SET mac = REVERSE(mac)')
    await connection.query('DELETE FROM `schema`; INSERT INTO `schema` SELECT * FROM kept; DROP TABLE kept')
  }, 60_000)

  test.each(['server', 'init', 'kek status'])(
    '%s warns of a database beyond this host without TLS, and ends where its state directory cannot be made',
    async (verb) => {
      // Node's own mkdir would try for ever there.
      const stateDirectory = '/proc/strongroom/state'
      site.configure({ stateDirectory, database: { url: 'mysql://s@db.example.org/s' } })
      const { code, stdout, stderr } = await strongroom([...verb.split(' '), '--config', site.file])
      site.configure({})
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain("  stateDirectory: ENOENT: no such file or directory, mkdir '/proc/strongroom'")
      const warnings = stderr.split('\n').filter((line) => line.startsWith('{"level":40'))
      expect(warnings).toEqual([expect.stringContaining('the connection to db.example.org has no TLS')])
    },
  )

  test('with a wrong configuration names every field and exits with 2', async () => {
    site.configure({ workers: 'many', listen: 1 })
    const { code, stderr } = await strongroom(['server', '--config', site.file])
    site.configure({})
    expect(code).toBe(2)
    expect(stderr).toContain('  workers: "many" is not allowed')
    expect(stderr).toContain('  listen: unknown field')
  })
})
