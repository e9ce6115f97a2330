import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type MariaDb, startMariaDb } from '../../../scripts/embedded/mariadb.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { alive, clientWith, serving, until } from '../nodes.ts'
import { openSql } from '../sql.ts'
import { startWriters, type Writers } from '../writers.ts'

/** kill -9 of each kind of process, while clients write. */

/** Acknowledged writes between two deaths, so that each process dies in the middle of several. */
const between = 40

async function write(server: TestServer, die: (writers: Writers) => Promise<void>, deaths: number): Promise<void> {
  const writers = startWriters(server.client(), () => clientWith(server, ['default']))
  for (let death = 0; death < deaths; death++) {
    const before = writers.acknowledged
    await until(() => writers.acknowledged >= before + between)
    await die(writers)
  }
  const before = writers.acknowledged
  await until(() => writers.acknowledged >= before + between)
  await writers.stop()
  await using sql = await openSql(server.database.url)
  await writers.verify(sql)
}

test('kill -9 of a worker loses nothing that was acknowledged and leaves nothing half-written', async () => {
  await using server = await startServer({ workers: 2 })
  const die = async (): Promise<void> => {
    const [first] = serving(server)
    if (first === undefined) throw new Error('no worker serves')
    process.kill(first, 'SIGKILL')
    await until(() => serving(server).filter((pid) => pid !== first).length === 2)
  }
  await write(server, die, 2)
}, 120_000)

test('kill -9 of the supervisor ends its workers, and loses and leaves nothing either', async () => {
  await using server = await startServer({ workers: 2 })
  const die = async (): Promise<void> => {
    const workers = serving(server)
    await server.kill()
    await until(() => !workers.some(alive))
    await server.start()
    expect(serving(server)).not.toContain(workers[0])
  }
  await write(server, die, 2)
}, 120_000)

test('kill -9 of a database that is durable loses nothing, and service resumes by itself', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sr-'))
  const start = (): Promise<MariaDb> =>
    startMariaDb({ directory: join(directory, 'db'), schema: 'durable', durable: true })
  let mariadb = await start()
  try {
    const { url } = mariadb
    const database = { url, urls: [url], async [Symbol.asyncDispose]() {} }
    await using server = await startServer({ workers: 2, database })
    const workers = serving(server)
    const die = async (): Promise<void> => {
      mariadb.process.kill('SIGKILL')
      await until(() => !alive(mariadb.process.pid ?? 0))
      mariadb = await start()
    }
    await write(server, die, 2)
    expect(serving(server)).toEqual(workers)
  } finally {
    await mariadb[Symbol.asyncDispose]()
  }
}, 120_000)
