import { appendFileSync, copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { workersOf } from '../attack/nodes.ts'
import { createCertificate } from '../http/wire.ts'
import { until } from '../supervisor/node.ts'
import { type Running, start, strongroom } from './cli.ts'
import { createSite, type Site } from './site.ts'

/** SIGHUP replaces the workers when, and only when, something that they have read has changed. */

let site: Site
let node: Running
let address: string
const tls = () => ({ certificate: join(site.directory, 'tls.pem'), key: join(site.directory, 'tls.key') })
const fields = () => ({ listeners: [{ address: '127.0.0.1:0', tls: tls() }], workers: 2 })

beforeAll(async () => {
  site = await createSite()
  putCertificate()
  site.configure(fields())
  const { code, stderr } = await strongroom(['init', '--config', site.file])
  expect(code, stderr).toBe(0)
  node = start(['server', '--config', site.file])
  address = await node.ready()
}, 120_000)
afterAll(async () => {
  await node[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

/** Puts a new certificate of the same name in its place. */
function putCertificate(): void {
  const { certPath, keyPath } = createCertificate()
  copyFileSync(certPath, tls().certificate)
  copyFileSync(keyPath, tls().key)
}

const workers = (): number[] => workersOf(node.process.pid ?? 0).toSorted()
const said = (text: string): number => node.stderr().split(`"msg":"${text}"`).length - 1

/** The certificate that the server shows, as PEM's base64. */
function shown(): Promise<string> {
  const { port } = new URL(address)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().raw.toString('base64'))
      socket.destroy()
    })
    socket.once('error', reject)
  })
}
const stored = (): string => readFileSync(tls().certificate, 'utf8').replaceAll(/-----.*-----|\s/g, '')

/** Sends SIGHUP and waits until the configuration was read to the end. */
async function hangUp(outcome: string): Promise<void> {
  const before = said(outcome)
  node.process.kill('SIGHUP')
  await until(outcome, () => said(outcome) > before, 60_000)
}

const unchanged = 'configuration read again: it has not changed'
const read = 'configuration read again'
const refused = 'the new configuration was rejected; the old one stays in force'

async function expectReplaced(before: readonly number[]): Promise<void> {
  const fresh = () => workers().filter((pid) => !before.includes(pid))
  await until('two new workers alone', () => fresh().length === 2 && workers().length === 2, 60_000)
}

test('nothing changed: the same workers go on, also when the text of the file differs without saying anything else', async () => {
  const before = workers()
  expect(before).toHaveLength(2)
  const readings = said(read)
  await hangUp(unchanged)
  appendFileSync(site.file, '\n# nothing new\n')
  await hangUp(unchanged)
  expect(workers()).toEqual(before)
  expect(said(read)).toBe(readings)
}, 120_000)

test('a renewed certificate is served, though no path has changed', async () => {
  const before = workers()
  expect(await shown()).toBe(stored())
  putCertificate()
  await hangUp(read)
  await expectReplaced(before)
  expect(await shown()).toBe(stored())
}, 120_000)

test('a changed field replaces the workers once, however often SIGHUP comes meanwhile', async () => {
  const before = workers()
  site.configure({ ...fields(), limits: { idleSeconds: 30 } })
  const [changes, others] = [said(read), said(unchanged)]
  for (let signal = 0; signal < 3; signal++) node.process.kill('SIGHUP')
  await until('it was read', () => said(read) === changes + 1, 60_000)
  await expectReplaced(before)
  const after = workers()
  await hangUp(unchanged)
  expect([said(read), workers()]).toEqual([changes + 1, after])
  expect(said(unchanged)).toBeGreaterThan(others)
}, 120_000)

test('a certificate that cannot be read changes nothing, and says so', async () => {
  const before = workers()
  rmSync(tls().certificate)
  await hangUp(refused)
  expect(workers()).toEqual(before)
  putCertificate()
  await hangUp(read)
  await expectReplaced(before)
}, 120_000)

test('a certificate that does not belong to its key changes nothing, and a server does not start with it', async () => {
  const before = workers()
  copyFileSync(createCertificate().keyPath, tls().key)
  await hangUp(refused)
  expect(node.stderr()).toMatch(/listeners\.0\.tls: [^"]*key values mismatch/)
  expect(workers()).toEqual(before)
  const { code, stderr } = await strongroom(['server', '--config', site.file])
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('listeners.0.tls: ') })
  putCertificate()
  await hangUp(read)
  await expectReplaced(before)
}, 120_000)

test('a second server with the same state directory does not start, and the first is still reloaded', async () => {
  const { code, stderr } = await strongroom(['server', '--config', site.file])
  expect(code).toBe(1)
  expect(stderr).toContain(`process id ${node.process.pid} runs with the state directory`)
  expect((await strongroom(['reload', '--config', site.file])).code).toBe(0)
}, 120_000)
