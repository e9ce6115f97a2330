import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { systemClock } from '../../src/clock.ts'
import { createLog } from '../../src/log.ts'
import { Database, type DatabaseOptions } from '../../src/store/database.ts'
import type { Mac } from '../../src/store/sealed/seal.ts'
import { column, defineTable } from '../../src/store/table.ts'
import { causal } from '../support/engine.ts'
import { createMigrated } from '../support/template/migrated.ts'

/** A MAC under a key of the test's own. */
export function testMac(keyId = '00000000-0000-4000-8000-000000000001', key = Buffer.alloc(32, 7)): Mac {
  const compute = (message: Buffer): Buffer => createHmac('sha256', key).update(message).digest()
  return {
    keyId,
    format: 1,
    compute,
    knows: (id) => id === keyId,
    verify: (_, message, mac) => timingSafeEqual(compute(message), mac),
  }
}

export const quiet = createLog('silent')

export const policies = defineTable(
  'policies',
  { name: column.text(), text: column.text(), createdAt: column.integer(), updatedAt: column.integer() },
  { sealed: true },
)

export const mounts = defineTable(
  'mounts',
  {
    path: column.text(),
    type: column.text(),
    description: column.text(),
    accessor: column.text(),
    config: column.json<Record<string, unknown>>(),
    options: column.json<Record<string, unknown>>().nullable(),
    local: column.boolean(),
    sealWrap: column.boolean(),
    touched: column.boolean(),
    createdAt: column.integer(),
  },
  { sealed: true },
)

export const counters = defineTable(
  'usage_counters',
  { material: column.text(), used: column.integer() },
  { sealed: false },
)

export const policy = (name: string, text = 'path "a" {}') => ({ name, text, createdAt: 1, updatedAt: 2 })

/** Opens a database with a MAC, as a worker of its own would. */
export async function open(url: string, options: Partial<DatabaseOptions> = {}): Promise<Database> {
  const database = await Database.open({ url, poolSize: 5, log: quiet, clock: systemClock, ...options })
  database.useMac(testMac())
  return database
}

/** A migrated schema, a Database on it, and a way to attack it by SQL. */
export interface Bench extends AsyncDisposable {
  /** The first node of the database, and its only one outside a cluster. */
  readonly url: string
  readonly database: Database
  /** All nodes, the next one first: so that instances lie on different nodes. */
  nodes(): string
  /** One node, counted from 0. */
  nodeUrl(n: number): string
  /** Runs SQL on a node, the first one unless another is named, as the owner of the database could. */
  sql(text: string, values?: readonly unknown[], url?: string): Promise<RowDataPacket[]>
  /** One more instance, on the next node; disposed with the bench. */
  another(options?: Partial<DatabaseOptions>): Promise<Database>
}

/** All nodes in one URL, each of them first in turn. */
export function turned(urls: readonly string[], turn: number): string {
  const first = turn % urls.length
  return [...urls.slice(first), ...urls.slice(0, first)].join()
}

/** @param made the database; a fresh one of the run's server when absent */
export async function createBench(options: Partial<DatabaseOptions> = {}, made = createMigrated()): Promise<Bench> {
  const held = await made
  const database = await open(held.urls.join(), options)
  const others: Database[] = []
  let turn = 0
  const nodes = (): string => {
    turn++
    return turned(held.urls, turn)
  }
  return {
    url: held.url,
    database,
    nodes,
    nodeUrl: (n) => held.urls[n] ?? held.url,
    async sql(text, values = [], url = held.url) {
      const connection = await createConnection(url)
      try {
        if (!text.startsWith('SET GLOBAL')) await connection.query(causal)
        const [rows] = await connection.query<RowDataPacket[]>(text, [...values])
        return rows
      } finally {
        await connection.end()
      }
    },
    async another(more = {}) {
      const other = await open(nodes(), { ...options, ...more })
      others.push(other)
      return other
    },
    async [Symbol.asyncDispose]() {
      for (const other of others) await other[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
      await held[Symbol.asyncDispose]()
    },
  }
}

export const randomName = (): string => randomBytes(6).toString('hex')
