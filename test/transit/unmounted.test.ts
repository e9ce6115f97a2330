import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { rootAcl } from '../../src/auth/acl/compile.ts'
import type { Engine } from '../../src/engine.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import { Mounts } from '../../src/request/mounts/mounts.ts'
import { createMountSet } from '../../src/request/mounts/rows.ts'
import { createPipeline } from '../../src/request/pipeline.ts'
import type { Database } from '../../src/store/database.ts'
import { runJob } from '../auth/world.ts'
import { clock, manage, useCluster } from '../keys/support.ts'
import { quiet } from '../store/support.ts'

/** A mount that is removed, and emptied, under a request that has found it already. */

let database: Database
let mounts: Mounts
let engines: ReadonlyMap<string, Engine>
useCluster('unmounted', async ({ hsm, custody, place }) => {
  database = place.database
  const { operations, materials, transfer } = custody
  const { managed } = manage(custody, database, hsm)
  const ground = { database, operations, materials, transfer, managed, clock }
  engines = new Map([['transit', createTransit({ ...ground, ringLimit: 100 }) as Engine]])
  mounts = new Mounts({ database, engines, builtin: [], clock })
})

const caller = { tokenId: 't', accessor: 'a', displayName: 'd', maker: 'd', policies: [] }
const request = (method: string, rawPath: string, body = '{}') => ({
  id: randomUUID(),
  method,
  rawPath: `/v1/${rawPath}`,
  query: '',
  headers: { 'x-vault-token': 'root' },
  body: Buffer.from(body),
  remoteAddress: '127.0.0.1',
  remotePort: 1,
  receivedAt: 0,
  clientCertificate: undefined,
})

let isMade = false

test.each([
  ['removed', 'gone'],
  ['removed, and made anew by another', 'renewed'],
])(
  'a request under way is refused like one that comes too late, and never with 500, when its mount is %s',
  async (_, path) => {
    if (!isMade) await database.transaction((tx) => createMountSet(database, tx))
    isMade = true
    const signIns: (() => void)[] = []
    let waits = false
    const signIn = async () => {
      if (waits) await new Promise<void>((resolve) => signIns.push(resolve))
      return { caller, acl: rootAcl }
    }
    const pipeline = createPipeline({
      mounts,
      authenticator: { authenticate: signIn, recognise: signIn },
      engines,
      log: quiet,
    })
    for (const made of [path, `stays-${path}`]) await mounts.enable({ path: made, type: 'transit' })
    expect((await pipeline.handle(request('POST', `${path}/keys/k`))).status).toBe(200)
    expect((await pipeline.handle(request('POST', `stays-${path}/keys/k`))).status).toBe(200)
    waits = true
    const plaintext = '{"plaintext":"AAAA"}'
    const asked = [
      request('POST', `${path}/encrypt/k`, plaintext),
      request('POST', `${path}/encrypt/new`, plaintext),
      request('POST', `${path}/keys/k/rotate`),
      request('GET', `${path}/keys/k`),
      request('GET', `${path}/cache-config`),
      request('GET', `${path}/config/keys`),
      request('POST', `${path}/config/keys`, '{"disable_upsert":true}'),
      request('POST', `stays-${path}/encrypt/k`, plaintext),
    ].map((raw) => pipeline.handle(raw))
    await expect.poll(() => signIns.length).toBe(asked.length)
    await mounts.disable(path)
    await runJob(database, mounts.sweep)
    if (path === 'renewed') await mounts.enable({ path, type: 'transit' })
    waits = false
    for (const resolve of signIns) resolve()
    const replies = await Promise.all(asked)
    // Requests that change a key answer that it is missing.
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 400, 404, 404, 404, 404, 200])
    expect(String(replies[0]?.body)).toContain('no handler for route')
  },
)
