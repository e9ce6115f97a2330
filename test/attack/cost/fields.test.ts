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

/** Every field of every route, in requests that are otherwise right. */

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

/** An HSM token that is away may come back: managed keys answer 503. */
const away = /the token \\".*\\" .*of library same is not available/
/** They would end the story. */
const spared = ['POST sys/seal', 'POST sys/unseal', 'POST sys/init']
/** Sent again unspoiled afterwards, so that the story goes on with their good settings. */
const settings = /config|roles|tune/
/** Fields that stay set when they are absent. */
const resets: Readonly<Record<string, Body>> = {
  'POST pki/config/urls': {
    issuing_certificates: [],
    crl_distribution_points: [],
    ocsp_servers: [],
    enable_templating: false,
  },
}

/** Asks each route as it should be asked, and then with one field after the other replaced. */
class Attacker extends Teller {
  readonly faults: string[] = []
  asked = 0
  readonly #client: Client

  constructor(client: Client) {
    super(client)
    this.#client = client
  }

  override async tell(route: string, parameters: Body = {}, body?: Body | Buffer): Promise<Reply> {
    const reply = await super.tell(route, parameters, body)
    if (!route.startsWith('POST ') || spared.includes(route) || Buffer.isBuffer(body)) return reply
    const path = (route.split(' ')[1] ?? '').replace(/:(\w+)\*{0,2}/g, (_, name: string) => String(parameters[name]))
    for (const field of fieldsOf.get(route) ?? []) {
      for (const [title, value] of Object.entries(values)) {
        const { status, text } = await this.#client.post(path, { ...body, [field]: value })
        this.asked++
        if (status >= 500 && !away.test(text))
          this.faults.push(`${route}: ${field} = ${title}: ${status} ${text.slice(0, 200)}`)
      }
    }
    // A node takes four tries a second.
    if (route.includes('generate-root')) await delay(1500)
    if (settings.test(route)) await super.tell(route, parameters, { ...resets[route], ...body })
    return reply
  }
}

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

const attackerOf = (token?: string): Attacker => new Attacker(server.client(token))

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
