import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect } from 'vitest'
import { type Client, createClient, type Reply } from '../support/client.ts'
import { type ServerOptions, startServer, type TestServer } from '../support/server.ts'
import { type SharedNode, sharedNodeSocket } from '../support/template/sharednode.ts'

/** A node for the tests of a file. Each test takes names of its own, so that nothing is cleaned up. */
export interface TestNode {
  readonly url: string
  readonly root: Client
  /** A client with this token. */
  client(token: string): Client
  /** Makes a key of a fresh name in transit/ and answers the name. */
  key(settings?: Readonly<Record<string, unknown>>): Promise<string>
  /** Enables transit on a fresh path and answers the path, without slash. */
  mount(): Promise<string>
  /** A client whose token has this policy and no other. */
  limited(policy: string): Promise<Client>
}

/** A node of the file's own. */
interface OwnNode extends TestNode {
  readonly server: TestServer
}

/** Starts a node before the tests of a file and ends it after them. */
export function useNode(options: Pick<ServerOptions, 'workers' | 'environment' | 'config'> = {}): OwnNode {
  let server: TestServer | undefined
  const started = (): TestServer => {
    if (server === undefined) throw new Error(tooEarly)
    return server
  }
  beforeAll(async () => {
    server = await startServer(options)
  }, 120_000)
  afterAll(() => server?.[Symbol.asyncDispose]())
  return Object.defineProperty(nodeOf(started), 'server', { get: started }) as OwnNode
}

/**
 * The node that files of a run share, with two workers and everything as it is by default. For tests that neither change
 * nor count anything that belongs to the node as a whole: beside its own mounts, keys, policies and tokens a test finds
 * those of others.
 */
export function useSharedNode(): TestNode {
  let shared: SharedNode | undefined
  beforeAll(async () => {
    shared = await askForNode()
  }, 120_000)
  return nodeOf(() => {
    if (shared === undefined) throw new Error(tooEarly)
    return shared
  })
}

const tooEarly = 'the node starts before the first test, not while tests are collected'

/** @throws Error when it could not be started */
async function askForNode(): Promise<SharedNode> {
  const answer = JSON.parse(await text(connect(sharedNodeSocket())))
  if (answer.failed !== undefined) throw new Error(answer.failed)
  return answer
}

function nodeOf(started: () => SharedNode): TestNode {
  const client = (token: string): Client => createClient(() => started().url, token)
  const root = (): Client => client(started().rootToken)
  return {
    get url() {
      return started().url
    },
    get root() {
      return root()
    },
    client,
    async key(settings = {}) {
      const name = fresh('k')
      await done(root().post(`transit/keys/${name}`, settings))
      return name
    },
    async mount() {
      const path = fresh('m')
      await done(root().post(`sys/mounts/${path}`, { type: 'transit' }))
      return path
    },
    async limited(policy) {
      const name = fresh('p')
      await done(root().post(`sys/policies/acl/${name}`, { policy }))
      const reply = await done(root().post('auth/token/create', { policies: [name], no_default_policy: true }))
      return client(reply.string('auth.client_token'))
    },
  }
}

/** A name that no other test has. */
export const fresh = (prefix: string): string => `${prefix}${randomBytes(6).toString('hex')}`

/** The reply, which must be a success. */
export async function done(reply: Promise<Reply>): Promise<Reply> {
  const got = await reply
  if (got.status >= 300) throw new Error(`${got.status} ${got.text}`)
  return got
}

export const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')
/** The plaintext of most tests. */
export const hello = base64('hello')

export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The whole body of an answer with data. */
export const enveloped = (data: unknown, warnings: readonly string[] | null = null): unknown => ({
  request_id: expect.stringMatching(uuid),
  lease_id: '',
  renewable: false,
  lease_duration: 0,
  data,
  wrap_info: null,
  warnings,
  auth: null,
})

/** The answer must be this refusal and nothing else. */
export function expectRefused(reply: Reply, status: number, ...errors: readonly string[]): void {
  expect({ status: reply.status, body: reply.body }).toEqual({ status, body: { errors } })
}

/** The answer must be 200 with this data, and these warnings. */
export function expectData(reply: Reply, data: unknown, warnings: readonly string[] | null = null): void {
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body).toEqual(enveloped(data, warnings))
}
