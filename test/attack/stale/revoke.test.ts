import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import { expectServed, serving } from '../nodes.ts'
import { type Answer, connectionsOf, openPinned, type Pinned } from '../pinned.ts'

/**
 * A right that is taken away through one worker is honoured by no other from the moment of the answer; nor from the
 * moment when another worker says that there is nothing left to take.
 */

const rounds = 15
let names = 0

let first: TestServer
let second: TestServer
/** A connection to each of the three workers of the two nodes. */
let pinned: Pinned[]

beforeAll(async () => {
  first = await startServer({ workers: 2 })
  second = await startServer({ joins: first })
  pinned = [first, first, second].map(({ url, rootToken }) => openPinned(url, rootToken))
  for (const one of pinned) expect((await one.ask('GET', 'sys/mounts')).status).toBe(200)
  // For the tests that list keys.
  expectServed(await root().post('transit/keys/some'))
  expect(serving(first).map((pid) => connectionsOf(pid, first.url))).toEqual([1, 1])
}, 60_000)
afterAll(async () => {
  for (const one of pinned ?? []) one[Symbol.dispose]()
  await second?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
})

type Ask = (by: Pinned) => Promise<Answer>
const everywhere = (ask: Ask): Promise<number[]> => Promise.all(pinned.map(async (one) => (await ask(one)).status))
const everywhereIs = (status: number): number[] => pinned.map(() => status)

/**
 * Takes things away, each through the next worker, and uses it at once through all of them. Meanwhile another worker is
 * asked for the same, and with each of its answers a third one must refuse the use.
 */
async function takeAway(
  prepare: (name: string, round: number) => Promise<{ use: Ask; take: Ask; after: number }>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const { use, take, after } = await prepare(`name-${names++}`, round)
    // Into every cache.
    expect(await everywhere(use)).toEqual(everywhereIs(200))
    const [by, again, third] = [0, 1, 2].map((step) => pinned[(round + step) % pinned.length])
    if (!by || !again || !third) throw new Error('no connection')
    let isTaken = false
    const taken = take(by).finally(() => {
      isTaken = true
    })
    let least = 500
    // Before its COMMIT, or after it.
    await delay(2 * round)
    while (!isTaken) {
      const { status } = await take(again)
      least = Math.min(least, status)
      if (status < 300) expect((await use(third)).status).toBe(after)
    }
    // Of two who delete one key the later finds none.
    expect(Math.min(least, (await taken).status)).toBeLessThan(300)
    expect(await everywhere(use)).toEqual(everywhereIs(after))
  }
}

interface Listed {
  readonly data: { readonly keys: readonly string[] }
}

const root = () => first.client()
const newToken = async (policies: readonly string[], parent = root()): Promise<{ token: string; accessor: string }> => {
  const made = expectServed(await parent.post('auth/token/create', { policies }))
  return { token: made.string('auth.client_token'), accessor: made.string('auth.accessor') }
}
/** The request as somebody else makes it, on the same connection. */
const as =
  (token: string, verb: string, path: string, body?: unknown): Ask =>
  (by) =>
    by.ask(verb, path, body, token)
const asRoot = (verb: string, path: string, body?: unknown): Ask => as(first.rootToken, verb, path, body)

test.each(['accessor', 'token', 'lease'] as const)('a token that is revoked by its %s is honoured by no worker', (by) =>
  takeAway(async () => {
    const { token, accessor } = await newToken(['default'])
    const path = 'auth/token/create'
    const listed = expectServed(await root().call('LIST', `sys/leases/lookup/${path}`)).body as Listed
    const take = {
      accessor: asRoot('POST', 'auth/token/revoke-accessor', { accessor }),
      token: asRoot('POST', 'auth/token/revoke', { token }),
      // The ids of rows are in the order of their creation.
      lease: asRoot('POST', 'sys/leases/revoke', { lease_id: `${path}/${listed.data.keys.at(-1)}` }),
    }[by]
    return { use: as(token, 'GET', 'auth/token/lookup-self'), take, after: 403 }
  }),
)

test('nor is any token below it', () =>
  takeAway(async () => {
    const top = await newToken(['root'])
    const middle = await newToken(['root'], first.client(top.token))
    const { token } = await newToken(['default'], second.client(middle.token))
    return {
      use: as(token, 'GET', 'auth/token/lookup-self'),
      take: as(top.token, 'POST', 'auth/token/revoke-self'),
      after: 403,
    }
  }))

test('a right that a policy no longer grants, or now denies, is honoured by no worker', () =>
  takeAway(async (name, round) => {
    const text = (capability: string): string => `path "transit/keys" { capabilities = ["${capability}"] }`
    expectServed(await root().post(`sys/policies/acl/${name}`, { policy: text('list') }))
    const { token } = await newToken([name])
    const less = text(round % 2 === 0 ? 'read' : 'deny')
    return {
      use: as(token, 'GET', 'transit/keys?list=true'),
      take: asRoot('POST', `sys/policies/acl/${name}`, { policy: less }),
      after: 403,
    }
  }))

test('the rights of a removed policy are honoured by no worker', () =>
  takeAway(async (name) => {
    const policy = 'path "transit/keys" { capabilities = ["list"] }'
    expectServed(await root().post(`sys/policies/acl/${name}`, { policy }))
    const { token } = await newToken([name])
    return {
      use: as(token, 'GET', 'transit/keys?list=true'),
      take: asRoot('DELETE', `sys/policies/acl/${name}`),
      after: 403,
    }
  }))

test('a removed mount and its contents are answered by no worker', () =>
  takeAway(async (name) => {
    expectServed(await root().post(`sys/mounts/${name}`, { type: 'transit' }))
    expectServed(await root().post(`${name}/keys/key`))
    const use = asRoot('POST', `${name}/encrypt/key`, { plaintext: '' })
    return { use, take: asRoot('DELETE', `sys/mounts/${name}`), after: 404 }
  }))

test('no worker opens a ciphertext below a raised floor', () =>
  takeAway(async (name) => {
    const sealed = expectServed(await root().post(`transit/encrypt/${name}`, { plaintext: '' }))
    expectServed(await root().post(`transit/keys/${name}/rotate`))
    const use = asRoot('POST', `transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') })
    return { use, take: asRoot('POST', `transit/keys/${name}/config`, { min_decryption_version: 2 }), after: 400 }
  }))

test('a soft-deleted key opens nothing anywhere', () =>
  takeAway(async (name) => {
    const sealed = expectServed(await root().post(`transit/encrypt/${name}`, { plaintext: '' }))
    const use = asRoot('POST', `transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') })
    return { use, take: asRoot('DELETE', `transit/keys/${name}/soft-delete`), after: 400 }
  }))

test('a deleted key opens nothing anywhere', () =>
  takeAway(async (name) => {
    const sealed = expectServed(await root().post(`transit/encrypt/${name}`, { plaintext: '' }))
    expectServed(await root().post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    const use = asRoot('POST', `transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') })
    return { use, take: asRoot('DELETE', `transit/keys/${name}`), after: 400 }
  }))
