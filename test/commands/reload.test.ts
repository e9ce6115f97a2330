import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decrypt, encrypt } from '../attack/nodes.ts'
import { alive, fetchAlone, until } from '../supervisor/node.ts'
import { createClient } from '../support/client.ts'
import { initCluster, type Shown } from '../support/init.ts'
import { type Running, start, strongroom } from './cli.ts'
import { type Deed, startLoad, transitWork } from './load.ts'
import { createSite, type Site } from './site.ts'

let site: Site
let shown: Shown
let server: Running
let address: string
const root = () => createClient(() => address, shown.rootToken)
const reload = (...more: string[]) => strongroom(['reload', '--config', site.file, ...more])

beforeAll(async () => {
  site = await createSite({ workers: 2, drain: { keepAliveSeconds: 5 } })
  shown = await initCluster(site.file)
  server = start(['server', '--config', site.file], {
    STRONGROOM_PKCS11_PIN: '{ environment: STRONGROOM_PIN }',
    STRONGROOM_PIN: site.token.pin,
  })
  address = await server.ready()
}, 120_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await site?.[Symbol.asyncDispose]()
})

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

const drained = () => server.stderr().split('"msg":"the program before this one is drained"').length - 1
/** Starts the new program and waits until it may be followed by another. */
async function upgrade(): Promise<void> {
  const before = drained()
  expect(await reload('--exec')).toEqual({ code: 0, stdout: 'the new program serves\n', stderr: '' })
  await until('the old one is drained', () => drained() > before, 60_000)
}

describe('strongroom reload', { shuffle: false }, () => {
  test('--exec starts the new program while 16 clients ask, encrypt, sign and rotate: none fails, nothing is lost', async () => {
    const pid = server.process.pid ?? 0
    const old = childrenOf(pid)
    const { deeds, verify } = await transitWork(root(), 2)
    const health: Deed = (send) => send('GET', 'sys/health')
    const load = startLoad(address, shown.rootToken, [...deeds, ...Array(10).fill(health)])
    await until('all are answered', () => (load.outcomes.get(200) ?? 0) > 200, 60_000)
    await upgrade()
    await until('the old workers are gone', () => !old.some(alive) && childrenOf(pid).length === 1, 60_000)
    const before = load.outcomes.get(200) ?? 0
    await until('the new ones answer', () => (load.outcomes.get(200) ?? 0) > before + 200, 60_000)
    await load.end()
    expect([...load.outcomes.keys()]).toEqual([200])
    await verify()
    const [successor = 0] = childrenOf(pid)
    for (const one of [successor, ...childrenOf(successor)]) {
      for (const file of ['environ', 'cmdline']) {
        expect(readFileSync(`/proc/${one}/${file}`, 'utf8')).not.toContain(site.token.pin)
      }
    }
    expect(childrenOf(successor)).toHaveLength(2)
  }, 240_000)

  test('--exec of a sealed node leaves it sealed, and the new program is unsealed by the secret', async () => {
    const kept = await encrypt(root(), 'used')
    expect((await root().call('PUT', 'sys/seal')).status).toBe(204)
    await upgrade()
    expect((await root().get('sys/seal-status')).body).toMatchObject({ sealed: true })
    expect((await decrypt(root(), 'used', kept)).status).toBe(503)
    expect((await root().post('sys/unseal', { key: shown.unsealSecret })).body).toMatchObject({ sealed: false })
    expect((await decrypt(root(), 'used', kept)).status).toBe(200)
  }, 240_000)

  test('--exec of a program that cannot serve says why, and the old one goes on', async () => {
    site.configure({ workers: 'none' })
    const { code, stdout, stderr } = await reload('--exec')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('workers: "none" is not allowed')
    site.configure({ audit: { directory: '/proc/nowhere' }, listeners: [{ address: '192.0.2.1:8200' }] })
    const refused = await reload('--exec')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(
      /^strongroom: the old program goes on, because the new one does not serve: listen EADDR/,
    )
    expect((await fetchAlone(`${address}/v1/sys/health`)).status).toBe(200)
    site.configure({ workers: 2 })
  }, 240_000)

  test('says so where no server runs', async () => {
    server.process.kill('SIGTERM')
    expect(await server.ended).toBe(0)
    for (const exec of [[], ['--exec']]) {
      const { code, stderr } = await reload(...exec)
      expect(code).toBe(1)
      expect(stderr).toMatch(/^strongroom: no server with the state directory .* runs\n$/)
    }
  }, 120_000)

  test('a socket that systemd has opened serves, also after an upgrade', async () => {
    const socket = createServer()
    await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve))
    const { port } = socket.address() as AddressInfo
    site.configure({ workers: 1, listeners: [{ address: `127.0.0.1:${port}`, socket: 'api' }] })
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
    // As systemd does: the process id is known, and the sockets begin at descriptor 3.
    const line = `LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=api exec "$0" ${main} server --config ${site.file}`
    const { fd } = (socket as unknown as { _handle: { fd: number } })._handle
    const child = spawn('sh', ['-c', line, process.execPath], { stdio: ['ignore', 'pipe', 'inherit', fd] })
    socket.close()
    try {
      const [said] = await once(child.stdout as Readable, 'data')
      expect(String(said)).toBe(`ready http://127.0.0.1:${port}\n`)
      expect((await fetchAlone(`http://127.0.0.1:${port}/v1/sys/health`)).status).toBe(200)
      expect(await reload('--exec')).toMatchObject({ code: 0 })
      expect((await fetchAlone(`http://127.0.0.1:${port}/v1/sys/health`)).status).toBe(200)
    } finally {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
  }, 240_000)
})
