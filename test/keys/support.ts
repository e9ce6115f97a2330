import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Hsm } from '../../src/hsm/hsm.ts'
import type { Alone } from '../../src/keys/cluster/alone.ts'
import type { CustodyOptions } from '../../src/keys/cluster/opening.ts'
import { Custody } from '../../src/keys/custody.ts'
import { type InitialiseOptions, initialise } from '../../src/keys/initialise.ts'
import { ManagedAdministration } from '../../src/keys/managed/administration.ts'
import { ManagedHsms, type ManagedHsmsOptions } from '../../src/keys/managed/hsms.ts'
import { ManagedKeys } from '../../src/keys/managed/managedkeys.ts'
import { Registry } from '../../src/keys/managed/registry.ts'
import type { Material } from '../../src/keys/material.ts'
import type { Owner, Specification } from '../../src/keys/materials/draft.ts'
import type { SecretOwner } from '../../src/keys/materials/opening.ts'
import type { Mount } from '../../src/route.ts'
import { Database } from '../../src/store/database.ts'
import { Tries } from '../../src/system/tries.ts'
import type { TestDatabase } from '../support/database.ts'
import { copyKeys, createTestedToken } from '../support/template/keys.ts'
import { createMigrated } from '../support/template/migrated.ts'
import type { TestToken } from '../support/token.ts'

export const log = pino({ level: 'silent' })
export const clock = systemClock
export const none = new AbortController().signal

export function openHsm(token: TestToken, executor: 'inline' | 'threads' = 'inline'): Promise<Hsm> {
  return Hsm.open({
    library: token.library,
    ...(token.libraryParameters === undefined ? {} : { libraryParameters: token.libraryParameters }),
    token: token.libraryParameters === undefined ? { serial: token.serial } : { label: token.label },
    pin: token.pin,
    executor,
    log,
    clock,
    stateDirectory: token.directory,
    onFatal: (reason) => {
      throw reason
    },
  })
}

/** A process's view of one schema: its own connections, registered so that it caches. */
export class Place implements AsyncDisposable {
  readonly url: string
  readonly database: Database
  readonly #drop: (() => Promise<void>) | undefined

  private constructor(url: string, database: Database, drop?: () => Promise<void>) {
    this.url = url
    this.database = database
    this.#drop = drop
  }

  static async fresh(): Promise<Place> {
    return Place.of(await createMigrated())
  }

  /** Of a migrated schema, which it disposes. */
  static of(schema: TestDatabase): Promise<Place> {
    return Place.at(schema.url, async () => schema[Symbol.asyncDispose]())
  }

  static async at(url: string, drop?: () => Promise<void>): Promise<Place> {
    return new Place(url, await Database.open({ url, poolSize: 4, log, clock }), drop)
  }

  /** Runs one SQL statement as the database's owner could. */
  async sql(statement: string, values: (string | number | Buffer | null)[] = []): Promise<RowDataPacket[]> {
    const { searchParams, pathname } = new URL(this.url)
    const socketPath = searchParams.get('socketPath') ?? ''
    const connection = await createConnection({ user: 'root', socketPath, database: pathname.slice(1) })
    try {
      const [rows] = await connection.query<RowDataPacket[]>(statement, values)
      return rows
    } finally {
      await connection.end()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database[Symbol.asyncDispose]()
    await this.#drop?.()
  }
}

type Overrides = Partial<CustodyOptions>

export const options = (hsm: Hsm, database: Database, overrides: Overrides = {}): CustodyOptions => ({
  ...{ hsm, database, clock, log, strict: false, fips: false, handleLimit: 100, residentLimit: 3 },
  ...overrides,
})

export const initialising = (
  hsm: Hsm,
  database: Database,
  overrides: Partial<InitialiseOptions> = {},
): InitialiseOptions => ({ ...options(hsm, database), kek: 'generate', name: 'test', ...overrides })

/** A cluster that was initialised and opened, as a worker has it. */
export async function openCluster(hsm: Hsm, place: Place, overrides: Overrides = {}): Promise<Custody> {
  await initialise(initialising(hsm, place.database, overrides))
  return reopen(hsm, place, overrides)
}

export async function reopen(hsm: Hsm, place: Place, overrides: Overrides = {}): Promise<Custody> {
  const custody = await Custody.open(options(hsm, place.database, overrides))
  await place.database.start()
  return custody
}

/** A token, a schema, and the cluster that was opened on them. */
export interface Cluster {
  readonly hsm: Hsm
  readonly place: Place
  readonly custody: Custody
}

/** Opens a cluster before the tests of a file, hands it to `begun`, and ends it after them. */
export function useCluster(
  name: string,
  begun: (cluster: Cluster) => void | Promise<void>,
  overrides: Overrides = {},
  /** Runs before the module is loaded, which sees only the tokens of that moment. */
  before: () => Promise<void> = async () => {},
): void {
  let cluster: Cluster | undefined
  beforeAll(async () => {
    const copy = overrides.strict || overrides.fips ? undefined : await copyKeys()
    const token = copy?.token ?? (await createTestedToken(name))
    await before()
    const hsm = await openHsm(token)
    const place = copy ? await Place.of(copy.database) : await Place.fresh()
    const custody = copy ? await reopen(hsm, place, overrides) : await openCluster(hsm, place, overrides)
    cluster = { hsm, place, custody }
    await begun(cluster)
  }, 120_000)
  afterAll(async () => {
    cluster?.custody.close()
    await cluster?.place[Symbol.asyncDispose]()
    await cluster?.hsm[Symbol.asyncDispose]()
  })
}

/** More turns of the event loop than a key made ahead takes (making/ahead.ts). */
const turnsToRest = 20

/** Makes and stores one key part. */
export async function makeKey(
  custody: Custody,
  database: Database,
  algorithm: string,
  more: Partial<Specification> = {},
  owner: Partial<Owner> = {},
): Promise<Material> {
  const draft = await custody.materials.prepare({ algorithm, exportable: false, part: 'key', createdBy: 'me', ...more })
  const whose = { mount: '', key: randomUUID(), version: 1, ...owner }
  const row = await database.transaction((tx) => custody.materials.insert(tx, draft, whose))
  // The next of its sort is made ahead meanwhile: tests that count the token's objects would see half of that.
  for (let count = 0; count < turnsToRest; count++) await turn()
  return custody.materials.fetch(row.id)
}

/** Managed keys over a cluster, as a worker has them; disposing ends the tokens' sessions. */
export function manage(
  custody: Custody,
  database: Database,
  own: Hsm,
  more: Partial<ManagedHsmsOptions> & { strict?: boolean; mount?(uuid: string): Mount | undefined } = {},
): { managed: ManagedKeys; administration: ManagedAdministration; hsms: ManagedHsms } {
  const { materials } = custody
  const { pins, blobs } = custody.managed
  const { approval, certification, cipher } = custody.operations
  const onFatal = (reason: Error): void => {
    throw reason
  }
  const ownIds = () => custody.cluster.kekIds()
  const tries = new Tries({ workers: 1, clock }, 'wrong PINs')
  const ground = { libraries: [], own, tries, ownAllowed: false, stateDirectory: tmpdir(), log, clock, ownIds, onFatal }
  const hsms = new ManagedHsms({ ...ground, ...more })
  const registry = new Registry({ database, materials, clock })
  const { strict = false, mount = () => undefined } = more
  const managed = new ManagedKeys({
    database,
    registry,
    hsms,
    pins,
    blobs,
    approval,
    certification,
    cipher,
    clock,
    strict,
    mount,
  })
  return { managed, hsms, administration: new ManagedAdministration({ registry, hsms, pins, keys: managed }) }
}

/** The owner of a secret that belongs to no key of Transit. */
export const nobody: SecretOwner = { lock: async () => undefined, touch: () => undefined }

/** A run that nobody else can be beside: each test has a token of its own. */
export const undisturbed: Alone = async () => {}
