import { afterAll, beforeAll } from 'vitest'
import { done, fresh } from '../api/node.ts'
import type { Client, Reply } from '../support/client.ts'
import type { TestDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { createForeign, type Foreign, makeAes, makeEc, makeRsa } from './tool.ts'

type Settings = Readonly<Record<string, unknown>>

/**
 * A node, and two tokens that pkcs11-tool has filled: one beside the server's own in its module, one in another module.
 */
export interface World {
  readonly root: Client
  readonly url: string
  readonly server: TestServer
  readonly database: TestDatabase
  /** The one beside the server's own. */
  readonly sibling: TestToken
  readonly foreign: Foreign
  /** A managed key in the sibling token: `ec`, by ECDSA, for any mount, by default. */
  settingsOf(more?: Settings): Settings
  /** The same in the foreign token. */
  elsewhere(more?: Settings): Settings
  /** Makes a managed key and returns its name. */
  managed(settings: Settings): Promise<string>
  /** Makes a transit key whose first version is a new managed key of these settings; returns its name. */
  keyOf(settings: Settings): Promise<string>
}

/** Begins it before the tests of a file and ends it after them. */
export function useWorld(): World {
  let server: TestServer
  let sibling: TestToken
  let foreign: Foreign
  beforeAll(async () => {
    sibling = await createToken('sibling')
    foreign = await createForeign()
    await makeRsa(sibling, 'rsa', '01')
    await makeEc(sibling, 'ec', '02')
    await makeEc(sibling, 'ec384', '03', 'secp384r1')
    await makeAes(sibling, 'aes', '04')
    await makeRsa(foreign, 'rsa', '0a')
    await makeEc(foreign, 'ec', '0b')
    const { library, environment } = foreign
    const pkcs11Libraries = [
      { name: 'Same', library: sibling.library },
      { name: 'other', library, environment },
    ]
    server = await startServer({ workers: 2, config: { pkcs11Libraries } })
  }, 180_000)
  afterAll(() => server?.[Symbol.asyncDispose]())
  const ec = { mechanism: '0x1041', key_label: 'ec', any_mount: true }
  const world: World = {
    get root() {
      return server.client()
    },
    get url() {
      return server.url
    },
    get server() {
      return server
    },
    get database() {
      return server.database
    },
    get sibling() {
      return sibling
    },
    get foreign() {
      return foreign
    },
    settingsOf: (more) => ({ library: 'same', token_label: sibling.label, pin: sibling.pin, ...ec, ...more }),
    elsewhere: (more) => ({ library: 'other', token_label: foreign.label, pin: foreign.pin, ...ec, ...more }),
    async managed(settings) {
      const name = fresh('mk')
      await done(world.root.post(at(name), settings))
      return name
    },
    async keyOf(settings) {
      const name = fresh('k')
      const managed_key_name = await world.managed(settings)
      await done(world.root.post(`transit/keys/${name}`, { type: 'managed_key', managed_key_name }))
      return name
    },
  }
  return world
}

/** The path of a managed key. */
export const at = (name: string): string => `sys/managed-keys/pkcs11/${name}`
export const dataOf = (reply: Reply) => (reply.body as { data: Record<string, unknown> }).data
