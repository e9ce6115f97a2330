import type { Clock } from '../clock.ts'
import { badRequest } from '../errors.ts'
import type { MaybePromise } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import { column, defineTable, type Row } from '../store/table.ts'

export const devicesTable = defineTable(
  'audit_devices',
  {
    path: column.text(),
    type: column.text(),
    description: column.text(),
    options: column.json<Readonly<Record<string, string>>>(),
    local: column.boolean(),
    createdAt: column.integer(),
  },
  { sealed: true },
)

/** A stored device; `path` ends in a slash. It never changes; it is only enabled and disabled. */
export type Device = Row<typeof devicesTable>

/** A device to enable. */
export interface NewDevice extends Pick<Device, 'path' | 'type' | 'description' | 'options' | 'local'> {}

/** The set has one entry in the cache, and one name to touch. */
const set = 'all'
const limit = 100

/**
 * The enabled devices. A reader sees one verified set, never older than the last acknowledged change: once an enable is
 * answered, every worker of every node writes to the device. Rejects with DamagedRow when a device was taken out of the
 * database, so that nobody can end the audit from there.
 */
export class Devices {
  readonly #database: Database
  readonly #clock: Clock
  readonly #table
  readonly #head
  readonly #cache

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#table = database.table(devicesTable)
    this.#head = database.head(devicesTable.name)
    this.#cache = database.cache<readonly Device[]>({
      table: devicesTable.name,
      limit: 1,
      load: (q) => this.#head.verify(q, this.#list(q)),
    })
  }

  /** By path. */
  list(): MaybePromise<readonly Device[]> {
    return this.peek() ?? Promise.resolve(this.#cache.get(set)).then((devices) => devices ?? [])
  }

  /** The same, if it is cached. */
  peek(): readonly Device[] | undefined {
    return this.#cache.peek(set)
  }

  /** @throws ApiError 400 for a path that is taken */
  async insert(id: string, device: NewDevice): Promise<void> {
    await this.#change(async (tx, devices) => {
      requireFreePath(devices, device.path)
      return [...devices, await this.#table.insert(tx, { ...device, id, createdAt: this.#clock.wall() })]
    })
  }

  /** Removes a device; an unknown one is ignored. */
  async remove(path: string): Promise<void> {
    await this.#change(async (tx, devices) => {
      const gone = devices.find((device) => device.path === path)
      if (gone) await this.#table.remove(tx, gone)
      return devices.filter((device) => device !== gone)
    })
  }

  async #change(work: (tx: Transaction, devices: readonly Device[]) => Promise<readonly Device[]>): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const [, devices] = await Promise.all([this.#head.lock(tx), this.#list(tx)])
      await this.#head.verify(tx, devices)
      const changed = await work(tx, devices)
      if (changed.length === devices.length) return
      await this.#head.advance(tx, changed)
      tx.touch(devicesTable.name, set)
    })
  }

  #list(q: Reader): Promise<Device[]> {
    return this.#table.list(q, {}, { by: 'path', limit })
  }
}

/** @throws ApiError 400 when a device stands at the path, above or below it, or there are too many */
export function requireFreePath(devices: readonly Device[], path: string): void {
  const other = devices.find((device) => device.path.startsWith(path) || path.startsWith(device.path))
  if (other) throw badRequest(`path already in use: ${other.path}`)
  if (devices.length === limit - 1) throw badRequest(`there may be at most ${limit - 1} audit devices`)
}

/**
 * The path of a device, with its slash.
 * @throws ApiError 400
 */
export function devicePath(name: string): string {
  const path = name.replace(/\/$/, '')
  if (/^\w[\w.@~-]*(?:\/\w[\w.@~-]*)*$/.test(path) && path.length <= 200) return `${path}/`
  throw badRequest('the parts of a device path begin with a letter, a digit or _ and go on with these and - . @ ~')
}
