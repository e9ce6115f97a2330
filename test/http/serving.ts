import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { Type } from 'typebox'
import { anyObject, data } from '../../src/answers.ts'
import { compile, rootAcl } from '../../src/auth/acl/compile.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import type { Authenticator } from '../../src/auth/authenticate.ts'
import type { Engine } from '../../src/engine.ts'
import { absent, badRequest } from '../../src/errors.ts'
import { boolean, integer, map, raw, text, wholeBody } from '../../src/field.ts'
import { type Budgets, shareMemory } from '../../src/http/budget.ts'
import type { ListenerLimits, ListenerOptions } from '../../src/http/listeners.ts'
import type { Pipeline } from '../../src/request/exchange.ts'
import { builtinRecord } from '../../src/request/mounts/mount.ts'
import { MountSet } from '../../src/request/mounts/mountset.ts'
import { mountsByPath } from '../../src/request/mounts/overlap.ts'
import { createPipeline } from '../../src/request/pipeline.ts'
import { Answer, route } from '../../src/route.ts'
import { type Listener, openListener } from './listener.ts'

/** The state of the test engine. */
export interface Shelf {
  readonly names: Set<string>
  readonly capabilities: string[]
}

const nothing = Type.Object({})
const fields = Type.Object({
  size: integer({ about: 'A size.', minimum: 1, maximum: 64 }),
  derived: boolean({ about: 'A flag.' }),
  hash: text({ about: 'A word.', aliases: ['algorithm'] }),
  labels: map({ about: 'Pairs.', longest: wholeBody }),
  items: raw({ about: 'Anything.' }),
})
const plain = { access: 'token', about: 'For the test.', answers: data(anyObject) } as const
const declare = route<Shelf, typeof nothing>
const declareFields = route<Shelf, typeof fields>

const routes = [
  declare({
    ...plain,
    method: 'LIST',
    path: 'keys',
    body: nothing,
    run({ context }) {
      if (context.names.size === 0) throw absent()
      return { keys: [...context.names].sort() }
    },
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'keys/:name',
    body: nothing,
    run({ context, params }) {
      if (!context.names.has(params.name ?? '')) throw absent()
      return { name: params.name, caller: 'known' }
    },
  }),
  declareFields({
    ...plain,
    method: 'POST',
    path: 'keys/:name',
    body: fields,
    exists: ({ names }, _mount, params) => Promise.resolve(names.has(params.name ?? '')),
    run({ context, params, body, capability }) {
      context.names.add(params.name ?? '')
      context.capabilities.push(capability)
      return { ...body, name: params.name }
    },
  }),
  declare({
    ...plain,
    method: 'DELETE',
    path: 'keys/:name',
    body: nothing,
    async run({ context, params }) {
      if (!context.names.delete(params.name ?? '')) throw badRequest('no such key')
      return undefined
    },
  }),
  declareFields({
    ...plain,
    method: 'POST',
    path: 'keys/:name/config',
    body: fields,
    run({ warn, body }) {
      if (body.derived) warn('said so')
      return undefined
    },
  }),
  declareFields({ ...plain, method: 'PATCH', path: 'keys/:name', body: fields, run: ({ body }) => ({ ...body }) }),
  declare({ ...plain, method: 'POST', path: 'seal', access: 'sudo', body: nothing, run: () => undefined }),
  declare({
    ...plain,
    method: 'GET',
    path: 'health',
    access: 'public',
    body: nothing,
    run: ({ caller }) => new Answer({ status: 429, bare: { caller: caller?.displayName ?? 'nobody' } }),
  }),
  declare({ ...plain, method: 'HEAD', path: 'health', access: 'public', body: nothing, run: () => undefined }),
  declare({
    ...plain,
    method: 'GET',
    path: 'der',
    access: 'public',
    body: nothing,
    run: () => new Answer({ raw: { type: 'application/pkix-crl', body: Buffer.of(0, 255) } }),
  }),
  declare({ ...plain, method: 'GET', path: 'all', inject: true, body: nothing, run: () => ({ 'b/': 1, 'a/': 2 }) }),
  declare({
    ...plain,
    method: 'GET',
    path: 'bug',
    body: nothing,
    run() {
      throw new Error('S3CRET inside')
    },
  }),
  declare({ ...plain, method: 'GET', path: 'laterbug', body: nothing, run: () => Promise.reject(new Error('S3CRET')) }),
  declare({
    ...plain,
    method: 'GET',
    path: 'badheader',
    access: 'public',
    body: nothing,
    run: () => new Answer({ data: {}, headers: { 'X-Bad': 'a\r\nb' } }),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'slow',
    access: 'public',
    body: nothing,
    run: () => new Promise((resolve) => setTimeout(() => resolve({ slow: true }), 200)),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'slow/:milliseconds',
    access: 'public',
    body: nothing,
    run: ({ params }) => new Promise((resolve) => setTimeout(resolve, Number(params.milliseconds), undefined)),
  }),
  declare({
    ...plain,
    method: 'GET',
    path: 'open/:bytes',
    access: 'public',
    body: nothing,
    run: ({ params }) => new Answer({ raw: { type: 'text/plain', body: Buffer.alloc(Number(params.bytes), 'x') } }),
  }),
]

export const policyText = `
path "shelf/keys/mine" { capabilities = ["create", "read"] }
path "shelf/keys/update" { capabilities = ["update"] }
path "shelf/keys" { capabilities = ["list"] }
path "shelf/seal" { capabilities = ["update"] }
path "nowhere/*" { capabilities = ["read"] }
path "shelf/keys/forbidden" { capabilities = ["deny"] }
`

export const caller = (displayName: string) => ({
  tokenId: displayName,
  accessor: 'a',
  displayName,
  maker: displayName,
  policies: [],
})

const authenticator: Authenticator = {
  authenticate(credential) {
    if (credential === 'root') return { caller: caller('root'), acl: rootAcl }
    if (credential === 'limited') {
      return Promise.resolve({ caller: caller('limited'), acl: compile(new Map([['p', parsePolicy(policyText)]])) })
    }
    if (credential === 'late') return delay(50, { caller: caller('late'), acl: rootAcl })
    if (credential === 'unanswered') return new Promise(() => undefined)
    if (credential === 'broken') throw new Error('the database is away')
    return undefined
  },
  recognise: (credential) => authenticator.authenticate(credential),
}

export interface Serving {
  readonly listener: Listener
  readonly pipeline: Pipeline
  readonly shelf: Shelf
  /** Every line that was logged. */
  readonly logged: string[]
  ask(method: string, path: string, options?: Question): Promise<Reply>
}

export interface Question {
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer | undefined
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
  readonly text: string
  /** The body, parsed; undefined when it is empty. */
  readonly json: Record<string, unknown>
}

/** Serves the test engine under shelf/ on loopback. */
export async function serve(
  options: Partial<ListenerOptions> = {},
  budgets: Budgets = shareMemory(1024),
  other: Partial<ListenerLimits> = {},
): Promise<Serving> {
  const shelf: Shelf = { names: new Set(), capabilities: [] }
  const logged: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })
  const engine: Engine<Shelf> = { type: 'shelf', context: shelf, routes }
  const shelves = ['shelf', 'empty'].map((type) => builtinRecord({ path: `${type}/`, type, description: '' }))
  const set = new MountSet(mountsByPath(shelves))
  const pipeline = createPipeline({
    mounts: { find: (path) => set.lookUp(path) },
    authenticator,
    engines: new Map<string, Engine>([['shelf', engine as Engine]]),
    log,
  })
  const seconds = { headersSeconds: 2, requestSeconds: 2, idleSeconds: 5 }
  const limits = { ...seconds, leastBytesPerSecond: 2048, connections: 100, ...other }
  const listener = await openListener(
    { address: '127.0.0.1:0', maxRequestBytes: 32 * 1024 * 1024, ...options },
    { pipeline, log, limits, budgets },
  )
  const port = Number(listener.address.split(':').at(-1))
  return {
    listener,
    pipeline,
    shelf,
    logged,
    ask: (method, path, question) => ask(port, method, path, question),
  }
}

/** Asks a server on loopback, as root unless a token is named. */
export function ask(port: number, method: string, path: string, question: Question = {}): Promise<Reply> {
  const { token = 'root', headers = {}, body } = question
  const credential: Record<string, string> = token === '' ? {} : { 'X-Vault-Token': token }
  const whole = body !== undefined && headers['Transfer-Encoding'] === undefined
  const length: Record<string, string> = whole ? { 'Content-Length': String(Buffer.byteLength(body)) } : {}
  return send(port, method, path, { ...credential, ...length, ...headers }, body)
}

function send(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Buffer | undefined,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, host: '127.0.0.1', method, path, headers })
    asked.on('error', reject).on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const all = bytes.toString('utf8')
        const { statusCode = 0, headers: answered } = response
        const isJson = answered['content-type'] === 'application/json' && all !== ''
        resolve({ status: statusCode, headers: answered, bytes, text: all, json: isJson ? JSON.parse(all) : {} })
      })
    })
    asked.end(body)
  })
}
