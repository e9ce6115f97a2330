import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hello } from '../api/node.ts'
import { type Running, start, strongroom } from '../commands/cli.ts'
import { createSite, type Site } from '../commands/site.ts'
import { type Client, createClient } from '../support/client.ts'
import { runDirectory } from '../support/directory.ts'
import { linesOf } from './device.ts'

let site: Site
let node: Running
let rootToken: string
let client: () => Client
beforeAll(async () => {
  site = await createSite({ workers: 2 })
  const made = await strongroom(['init', '--config', site.file, '--json'])
  rootToken = JSON.parse(made.stdout).root_token
  node = start(['server', '--config', site.file])
  const address = await node.ready()
  client = () => createClient(() => address, rootToken)
}, 120_000)
afterAll(async () => {
  await node[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

/** Everything on standard output but the ready line. */
const printed = (): string => node.stdout().replace(/^ready .*\n/m, '')

/** In this order: the last lines of one test are the first that the next one finds. */
describe('audit lines on standard output', { shuffle: false }, () => {
  test('file_path=stdout writes the lines of every worker whole to standard output, with nothing in clear', async () => {
    const made = await client().post('sys/audit/out', { type: 'file', options: { file_path: 'stdout' } })
    expect(made.status, made.text).toBe(204)
    expect((await client().get('sys/audit')).body).toMatchObject({ 'out/': { options: { file_path: 'stdout' } } })
    // Longer than a pipe takes at once without mixing writers.
    const plaintext = Buffer.alloc(3000, 'secret words ').toString('base64')
    const batch = Array.from({ length: 50 }, () => ({ plaintext }))
    const one = async (): Promise<string> => {
      const reply = await client().post('transit/encrypt/k', { batch_input: batch })
      expect(reply.status, reply.text).toBe(200)
      return reply.string('request_id')
    }
    const ids = (await Promise.all(Array.from({ length: 12 }, async () => [await one(), await one()]))).flat()
    const lines = linesOf(printed())
    expect(new Set(lines.map(({ chain }) => chain.incarnation)).size).toBe(3)
    for (const id of ids) {
      expect(lines.filter(({ request }) => request.id === id).map(({ type }) => type)).toEqual(['request', 'response'])
    }
    for (const secret of [plaintext.slice(0, 40), rootToken]) expect(node.stdout()).not.toContain(secret)
    expect(printed()).toContain((await client().post('sys/audit-hash/out', { input: plaintext })).string('data.hash'))
    const file = join(mkdtempSync(join(runDirectory(), 'out-')), 'lines')
    expect((await client().delete('sys/audit/out')).status).toBe(204)
    writeFileSync(file, printed())
    const read = await strongroom(['audit', 'verify', '--config', site.file, file])
    expect([read.code, read.stdout], read.stderr).toEqual([0, expect.stringMatching(/^unbroken$/m)])
  }, 120_000)

  test('a reader that stalls holds up the lines alone: with a file beside it service goes on, without one it is refused', async () => {
    const file = join(site.directory, 'state', 'audit', 'beside.log')
    for (const [path, target] of [
      ['beside', file],
      ['out', 'stdout'],
    ] as const) {
      const made = await client().post(`sys/audit/${path}`, { type: 'file', options: { file_path: target } })
      expect(made.status, made.text).toBe(204)
    }
    node.process.stdout?.pause()
    const long = { plaintext: Buffer.alloc(60_000, 'x').toString('base64') }
    for (let call = 0; call < 60; call++) {
      expect((await client().post('transit/encrypt/k', { batch_input: [long, { plaintext: hello }] })).status).toBe(200)
    }
    expect((await client().get('sys/health')).status).toBe(200)
    await until(() => node.stderr().includes('an audit device cannot be written'))
    // This one too: the deletion is done, but its answer cannot be recorded.
    expect((await client().delete('sys/audit/beside')).text).toContain('the answer is withheld')
    expect((await client().get('sys/mounts')).text).toContain('no audit device could be written, so nothing was done')
    node.process.stdout?.resume()
    // Each worker tries again after a pause of its own.
    await until(async () => (await client().delete('sys/audit/out')).status === 204)
  }, 120_000)

  test('a command has no standard output to audit to: what it would do is refused where no other device is', async () => {
    const made = await client().post('sys/audit/out', { type: 'file', options: { file_path: 'stdout' } })
    expect(made.status).toBe(204)
    const { code, stdout, stderr } = await strongroom(['root-token', '--config', site.file])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('no audit device could be written')
    expect((await client().delete('sys/audit/out')).status).toBe(204)
  }, 120_000)
})

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
