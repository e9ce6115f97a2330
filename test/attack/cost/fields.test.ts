import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { table as tokenTable } from '../../../src/auth/methods/token.ts'
import { table as pkiTable } from '../../../src/engines/pki/index.ts'
import { table as transitTable } from '../../../src/engines/transit/index.ts'
import { table as systemTable } from '../../../src/system/index.ts'
import { Teller, tellPki, tellSystem, tellTokens, tellTransit } from '../../growth/story.ts'
import { type Prepared, prepare } from '../../growth/world.ts'
import type { Client, Reply } from '../../support/client.ts'
import { runDirectory } from '../../support/directory.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { createToken, type TestToken } from '../../support/token.ts'
import { serving } from '../nodes.ts'

type Body = Readonly<Record<string, unknown>>

/** Every field of every route, in body or query, and every capture of a path, in requests that are otherwise right. */

const tables = { transit: transitTable, pki: pkiTable, 'auth/token': tokenTable, sys: systemTable }
const fieldsOf = new Map(
  Object.entries(tables).flatMap(([prefix, table]) =>
    Object.entries(table).map(([route, { body }]) => [route.replace(' ', ` ${prefix}/`), Object.keys(body.properties)]),
  ),
)

/** As much as a field takes, and forms of other fields. */
const values: Readonly<Record<string, unknown>> = {
  'half a million characters': 'A'.repeat(512 * 1024),
  '10,000 entries': Array(10_000).fill('a.example').join(),
  'a list of 10,000 texts': Array(10_000).fill('x'.repeat(50)),
  'a list of lists': [[[]], [{}]],
  'an object of 10,000 members': Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`m${index}`, 'a'])),
  'fifteen digits': '9'.repeat(15),
  '-1': -1,
  'a lone surrogate': '\ud800',
  'a NUL': 'a\0b',
}

/** As much as a query or a capture of a path takes, encoded for it. */
const encoded: Readonly<Record<string, string>> = {
  '8,000 characters': 'A'.repeat(8000),
  '1,000 entries': Array(1000).fill('a.b').join(),
  'an object': encodeURIComponent('{"a":[{}]}'),
  'fifteen digits': '9'.repeat(15),
  '-1': '-1',
  'a lone surrogate': '%ed%a0%80',
  'a NUL': 'a%00b',
  'a way up': '..%2f..%2fx',
  'half an escape': 'a%2',
}

/** An HSM token that is away may come back: managed keys answer 503. */
const away = /the token \\".*\\" .*of library same is not available/
/** They would end the story. */
const spared = ['POST sys/seal', 'POST sys/unseal', 'POST sys/init']
/** Sent again unspoiled afterwards, so that the story goes on with their good settings. */
const settings = /^(POST|PATCH) .*(config|roles|tune)/
/** Fields that stay set when they are absent. */
const resets: Readonly<Record<string, Body>> = {
  'POST pki/config/urls': {
    issuing_certificates: [],
    crl_distribution_points: [],
    ocsp_servers: [],
    enable_templating: false,
  },
}

/** Asks each route as it should be asked, and then with one field or capture after the other replaced. */
class Attacker extends Teller {
  readonly faults: string[] = []
  asked = 0
  readonly #client: Client
  /** Attacked already: a route, or a route with the names of the fields beside the spoiled one. */
  readonly #done: Set<string>

  /** The last good body of a POST, by its path. */
  readonly #written = new Map<string, Body>()

  constructor(client: Client, done = new Set<string>()) {
    super(client)
    this.#client = client
    this.#done = done
  }

  override async tell(route: string, parameters: Body = {}, body?: Body | Buffer): Promise<Reply> {
    const reply = await super.tell(route, parameters, body)
    if (spared.includes(route)) return reply
    if (this.#first(route)) await this.#spoilPath(route, parameters, body)
    if (Buffer.isBuffer(body) || !this.#first(`${route} ${Object.keys(body ?? {}).sort()}`)) return reply
    if (/^(POST|PATCH) /.test(route)) await this.#spoilBody(route, parameters, body)
    else await this.#spoilQuery(route, parameters)
    // A node takes four tries a second.
    if (route.includes('generate-root')) await delay(1500)
    if (settings.test(route)) await this.#reset(route, parameters, body)
    return reply
  }

  async #reset(route: string, parameters: Body, body: Body = {}): Promise<void> {
    const path = filled(route, parameters)
    // A patch leaves the rest as it was spoiled.
    if (route.startsWith('PATCH '))
      await super.tell(route.replace('PATCH', 'POST'), parameters, this.#written.get(path))
    else this.#written.set(path, { ...resets[route], ...body })
    await super.tell(route, parameters, { ...resets[route], ...body })
  }

  async #spoilBody(route: string, parameters: Body, body: Body = {}): Promise<void> {
    const path = filled(route, parameters)
    for (const field of fieldsOf.get(route) ?? []) {
      for (const [title, value] of Object.entries(values)) {
        await this.#send(route, `${field} = ${title}`, path, { ...body, [field]: value })
      }
    }
  }

  async #spoilQuery(route: string, parameters: Body): Promise<void> {
    const path = filled(route, parameters)
    for (const field of fieldsOf.get(route) ?? []) {
      const queries = Object.entries(encoded).map(([title, value]) => [title, `${field}=${value}`] as const)
      for (const [title, query] of [...queries, ['1,000 of them', Array(1000).fill(`${field}=1`).join('&')] as const])
        await this.#send(route, `?${field} = ${title}`, `${path}?${query}`)
    }
  }

  async #spoilPath(route: string, parameters: Body, body?: Body | Buffer): Promise<void> {
    for (const capture of Object.keys(parameters).filter((name) => route.includes(`:${name}`))) {
      for (const [title, value] of Object.entries(encoded))
        await this.#send(route, `:${capture} = ${title}`, filled(route, { ...parameters, [capture]: value }), body)
    }
  }

  async #send(route: string, spoiled: string, path: string, body?: Body | Buffer): Promise<Reply> {
    const [method = ''] = route.split(' ')
    const takesBody = method === 'POST' || method === 'PATCH'
    const reply = await this.#client.call(method, path, takesBody ? (body ?? {}) : undefined)
    this.asked++
    if (reply.status >= 500 && !away.test(reply.text))
      this.faults.push(`${route}: ${spoiled}: ${reply.status} ${reply.text.slice(0, 200)}`)
    return reply
  }

  #first(what: string): boolean {
    if (this.#done.has(what)) return false
    this.#done.add(what)
    return true
  }
}

const filled = (route: string, parameters: Body): string =>
  (route.split(' ')[1] ?? '').replace(/:(\w+)\*{0,2}/g, (_, name: string) => String(parameters[name]))

let server: TestServer
let managed: TestToken
let prepared: Prepared

beforeAll(async () => {
  managed = await createToken('managed')
  const config = { pkcs11Libraries: [{ name: 'same', library: managed.library }], audit: { directory: runDirectory() } }
  server = await startServer({ config })
  await server.stop()
  prepared = await prepare(server)
  await server.start()
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

/** Shared by the attackers of all tokens: the same request of another caller is parsed alike. */
const done = new Set<string>()
const attackerOf = (token?: string): Attacker => new Attacker(server.client(token), done)

describe('no field, whatever is in it, is answered by a fault or ends a worker', () => {
  test.each<[string, (attacker: Attacker) => Promise<void>]>([
    ['transit', tellTransit],
    ['pki', tellPki],
    ['auth/token', (attacker) => tellTokens(attacker, server, attackerOf)],
    ['sys', (attacker) => tellSystem(attacker, managed, prepared)],
  ])(
    '%s',
    async (_, tell) => {
      const workers = serving(server)
      const attacker = attackerOf()
      await tell(attacker)
      expect(attacker.faults).toEqual([])
      expect(attacker.asked).toBeGreaterThan(100)
      expect(serving(server)).toEqual(workers)
    },
    600_000,
  )
})
