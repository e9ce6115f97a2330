import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type MariaDb, startMariaDb } from '../../../scripts/embedded/mariadb.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { expectServed, until } from '../../attack/nodes.ts'
import { Line } from '../../store/line.ts'
import { runDirectory } from '../../support/directory.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/**
 * A node that is cut off from the database and left with yesterday's copy, which takes no writes, while another one
 * revokes.
 */

const stack = new AsyncDisposableStack()
let copy: MariaDb
let line: Line
let first: TestServer
let cutOff: TestServer
beforeAll(async () => {
  copy = stack.use(
    await startMariaDb({ directory: mkdtempSync(join(runDirectory(), 'copy-')), schema: 'copy', durable: false }),
  )
  first = stack.use(await startServer())
  line = stack.use(await Line.open(first.database.url))
  cutOff = stack.use(await startServer({ joins: first, config: { database: { url: `${line.url},${copy.url}` } } }))
}, 120_000)
afterAll(() => stack.disposeAsync())

async function post(node: TestServer, path: string, body = {}): Promise<Answer> {
  const reply = expectServed(await node.client().post(path, body))
  return reply.body === undefined ? {} : dataOf(reply)
}

/** Copies the present contents of the database to the copy. */
async function replicate(): Promise<void> {
  const [source] = parseTargets(first.database.url)
  const dump = execFileSync(
    'mariadb-dump',
    ['--no-defaults', '-uroot', `-S${source?.socketPath}`, `${source?.schema}`],
    {
      maxBuffer: 2 ** 30,
    },
  )
  execFileSync('mariadb', ['--no-defaults', '-uroot', `-S${copy.socket}`, 'copy'], { input: dump })
  const connection = await createConnection(copy.url)
  await connection.query('SET GLOBAL read_only = ON').finally(() => connection.end())
}

describe.skipIf(process.env.STRONGROOM_TEST_GALERA)('a node with nothing but a frozen copy', () => {
  test('neither answers good for a revoked certificate, nor serves the older list, nor revokes', async () => {
    await post(first, 'sys/mounts/pki/tune', { max_lease_ttl: '87600h' })
    const made = await post(first, 'pki/root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '80000h' })
    const ca = String(made.certificate)
    await post(first, 'pki/roles/r', { allow_any_name: true, key_type: 'ec' })
    const issue = async (): Promise<string> =>
      String((await post(first, 'pki/issue/r', { common_name: 'a.example', ttl: '24h' })).serial_number)
    const [serial, other] = [await issue(), await issue()]
    const status = (node: TestServer) => ocspStatus(`${node.url}/v1/pki/ocsp`, ca, serial).catch(() => 'no answer')
    const list = async (node: TestServer) => {
      const reply = await node.client('').get('pki/crl/pem')
      return reply.status === 200 ? (await readList(reply.text, ca)).serials.length : reply.status
    }
    expect([await status(cutOff), await list(cutOff)]).toEqual(['good', 0])
    await replicate()
    line.silent = true
    await post(first, 'pki/revoke', { serial_number: serial })
    expect([await status(first), await list(first)]).toEqual(['revoked', 1])
    expect([await status(cutOff), await list(cutOff)]).toEqual(['no answer', 503])
    expect((await cutOff.client().post('pki/revoke', { serial_number: other })).status).toBe(503)
    line.silent = false
    await until(async () => (await status(cutOff)) === 'revoked' && (await list(cutOff)) === 1)
  }, 120_000)
})
