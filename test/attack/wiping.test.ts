import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routes as pki } from '../../src/engines/pki/index.ts'
import { routes as transit } from '../../src/engines/transit/index.ts'
import type { Routes } from '../../src/route.ts'
import type { SystemContext } from '../../src/system/context.ts'
import { table as system } from '../../src/system/index.ts'
import { Remembered } from '../support/memory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import type { TestToken } from '../support/token.ts'
import { serving } from './nodes.ts'
import { authorities } from './wiped/authorities.ts'
import { exempt } from './wiped/exempt.ts'
import { createManaged, managedWorks } from './wiped/managed.ts'
import { moves } from './wiped/moving.ts'
import { uses } from './wiped/uses.ts'
import { Calls, mayStay } from './wiped/work.ts'

/**
 * Searches the memory of a worker for the bytes of secrets that it has worked with, under both executors: as bytes, in
 * either order, and as hexadecimal digits; the base64 of requests and answers stays as long as V8 leaves it there.
 * Memory that the C heap frees is overwritten here, as docs/threat-model.md advises.
 *
 * Only keys that OpenSSL parses (seeds of Ed25519, and keys that prove possession) may still be there at first: it
 * clears them when their KeyObject is collected. The other garbage is not collected before the first look, so that no
 * missing wipe is hidden.
 */
const environment = {
  GLIBC_TUNABLES: 'glibc.malloc.perturb=90:glibc.malloc.tcache_count=0',
  NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/collect.ts')}`,
}
const collections = 2
/** Works that are done between two searches of memory. */
const worksOfALook = 20

/** Of sys, the routes that work with keys or draw bytes. */
const ofSys: Routes<SystemContext> = Object.values(system).filter(({ path }) => /^(managed-keys|tools)\//.test(path))
const tables = { transit, pki, sys: ofSys }
let token: TestToken
const works = [...moves, ...uses, ...authorities, ...managedWorks(() => token)]
beforeAll(async () => {
  token = await createManaged()
})

test('every route that a secret may pass is named by a work, or with the reason that it is not', () => {
  // All that PKI shows on GET and LIST is public; PATCH and DELETE take settings and names.
  const isOpen = (mount: string, method: string, path: string): boolean =>
    mount === 'pki' && method !== 'POST' && path !== 'crl/rotate'
  const all = Object.entries(tables).flatMap(([mount, routes]) =>
    routes.flatMap(({ method, path }) => (isOpen(mount, method, path) ? [] : [`${mount}: ${method} ${path}`])),
  )
  const named = new Set(works.flatMap(({ through }) => through))
  expect([...named].filter((route) => exempt.has(route))).toEqual([])
  expect([...named, ...exempt].sort()).toEqual(all.sort())
})

describe.each(['inline', 'threads'])('with the executor %s', (executor) => {
  let server: TestServer
  const uncalled = new Map<string, readonly string[]>()
  let atOnce: readonly string[]
  let later: readonly string[]
  beforeAll(async () => {
    const pkcs11Libraries = [{ name: 'same', library: token.library }]
    const set = { ...environment, STRONGROOM_PKCS11_EXECUTOR: executor }
    server = await startServer({ environment: set, config: { pkcs11Libraries } })
    const client = server.client()
    const remembered = new Remembered()
    const worker = serving(server)[0] ?? 0
    const seen = new Set<string>()
    const held = randomBytes(16).toString('hex')
    await client.post(`transit/keys/${held}`)
    remembered.add('held', Buffer.from(held))
    for (const [index, { title, through, soon, run }] of works.entries()) {
      const calls = new Calls(client, tables)
      for (const [name, bytes] of Object.entries(await run(calls))) {
        remembered.add(`${title}: ${name}`, bytes)
        remembered.add(`${title}: ${name}, in hexadecimal`, Buffer.from(Buffer.from(bytes).toString('hex')))
      }
      uncalled.set(
        title,
        through.filter((route) => !calls.answered.has(route)),
      )
      // Soon, before something else takes the memory.
      if (soon || index % worksOfALook === worksOfALook - 1) {
        for (const name of remembered.found(worker)) seen.add(name)
      }
    }
    for (const name of remembered.found(worker)) seen.add(name)
    atOnce = [...seen]
    for (let collection = 0; collection < collections; collection++) {
      process.kill(worker, 'SIGURG')
      await client.get('sys/health')
    }
    later = remembered.found(worker)
  }, 600_000)
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('what the worker still holds is found', () => {
    expect(atOnce).toContain('held')
    expect(later).toContain('held')
  })

  test.each(works.map(({ title }) => title))('nothing is left of %s', (title) => {
    expect(uncalled.get(title)).toEqual([])
    const of = (found: readonly string[]) => found.filter((name) => name.startsWith(`${title}: `))
    expect(of(later)).toEqual([])
    expect(of(atOnce).filter((name) => !mayStay(name))).toEqual([])
  })
})
