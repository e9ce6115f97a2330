import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Connection as Client, createConnection } from 'mysql2'
import { expect, test } from 'vitest'
import { Connection } from '../../../src/store/pool/connection.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'

/** What each kind of cluster is asked for, seen by a server that only claims to be a member of one. */

const column = (name: string) => ({
  ...{ catalog: 'def', schema: '', table: '', orgTable: '', name, orgName: name, characterSet: 33, columnLength: 255 },
  ...{ columnType: 253, flags: 0, decimals: 0 },
})
const answer = (client: Client, rows: readonly (readonly [string, string])[]): void =>
  client.writeTextResult(
    rows.map(([name, value]) => ({ name, value })),
    [column('name'), column('value')],
  )

/** A server with these variables, which answers the question for its state with `state`. */
async function serverWith(variables: readonly (readonly [string, string])[], state: string) {
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    const client = createConnection({ stream: socket, isServer: true })
    client.on('error', () => undefined)
    const reply = (sql: string): void => {
      asked.push(sql)
      // The driver numbers packets as a client; a server's answer to packet 0 begins with 1.
      client.sequenceId = 1
      if (sql.startsWith('SHOW VARIABLES')) answer(client, [['max_allowed_packet', String(2 ** 24)], ...variables])
      else if (sql.startsWith('SELECT')) answer(client, [[state, '']])
      else client.writeOk()
      client.sequenceId = 0
    }
    client.on('query', reply)
    // Here the driver takes SET for a statement to prepare.
    client.on('stmt_prepare', reply)
    const hello = { protocolVersion: 10, serverVersion: '8.4.6', connectionId: 1, statusFlags: 2, characterSet: 8 }
    const authCallback = (_: unknown, done: () => void): void => {
      done()
      client.sequenceId = 0
    }
    // All capabilities but TLS.
    client.serverHandshake({ ...hello, capabilityFlags: 0xffffff & ~0x800, authCallback })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const dispose = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  const { port } = server.address() as AddressInfo
  return { asked, url: `mysql://u:p@127.0.0.1:${port}/s`, [Symbol.asyncDispose]: dispose }
}

const byOne = ['DO 1', 'DO 2']

/** Opens a connection there, asks whether the node takes writes, and runs two statements. */
async function talk(variables: readonly (readonly [string, string])[], state: string) {
  await using server = await serverWith(variables, state)
  const [target] = parseTargets(server.url)
  if (target === undefined) throw new Error('no target')
  const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
  const connection = await Connection.open(target, undefined, timeouts)
  const takesWrites = await connection.open('single', []).then(
    () => true,
    () => false,
  )
  const before = server.asked.length
  // The claimant knows no statements of several parts, and answers such a one as if it were one.
  await connection.script(byOne).catch(() => undefined)
  connection.destroy()
  const session = server.asked.slice(0, before).join('; ')
  return { takesWrites, session, script: server.asked.slice(before) }
}

const group = [['group_replication_group_name', '8c9e2f2e-0000-4000-8000-000000000001']] as const
const galera = [['wsrep_on', 'ON']] as const

test('a server on its own is asked for no more than it knows, and gets statements together', async () => {
  for (const variables of [[], [['wsrep_on', 'OFF']], [['group_replication_group_name', '']]] as const) {
    const { takesWrites, session, script } = await talk(variables, '0')
    expect([takesWrites, script]).toEqual([true, ['DO 1; DO 2']])
    expect(session).not.toMatch(/wsrep_sync_wait|group_replication_consistency|MEMBER_STATE/)
  }
})

test('a Galera node is asked for causal reads, and gets statements one by one', async () => {
  const { takesWrites, session, script } = await talk(galera, '0')
  expect([takesWrites, script]).toEqual([true, byOne])
  expect(session).toContain('wsrep_sync_wait = 1, wsrep_dirty_reads = OFF')
  expect(session).not.toMatch(/group_replication_consistency|MEMBER_STATE/)
})

test('a member of a replication group is asked for causal reads and for its state, and gets statements one by one', async () => {
  for (const [state, takes] of [
    ['0 ONLINE', true],
    ['1 ONLINE', false],
    ['0 RECOVERING', false],
  ] as const) {
    const { takesWrites, session, script } = await talk(group, state)
    expect([state, takesWrites, script]).toEqual([state, takes, byOne])
    expect(session).toContain("group_replication_consistency = 'BEFORE'")
    expect(session).toContain('MEMBER_STATE')
    expect(session).not.toContain('wsrep_sync_wait')
  }
})
