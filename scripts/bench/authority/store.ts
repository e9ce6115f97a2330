import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'
import type { Certified } from './authority.ts'

/** With the indexes by which certificates are read, listed and tidied. */
const table = `CREATE TABLE IF NOT EXISTS certificates (
  id BINARY(16) NOT NULL, mount VARCHAR(36) NOT NULL, site VARCHAR(32) NOT NULL, serial VARBINARY(20) NOT NULL,
  issuer VARCHAR(36) NOT NULL, der BLOB NOT NULL, not_after BIGINT NOT NULL, created_at BIGINT NOT NULL,
  PRIMARY KEY (id), UNIQUE KEY (mount, serial), KEY (mount, site, serial), KEY (mount, site, not_after, serial),
  KEY (mount, site, issuer, not_after, serial)) CHARACTER SET ascii`

const mount = '01900000-0000-7000-8000-000000000000'
const mostRows = 64

interface Waiting {
  readonly values: readonly (string | number | Buffer)[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Certificates on a connection of its own: those that come while a group is being committed are the next group. */
export class MinimalStore {
  readonly #url: string
  #opening: Promise<Connection> | undefined
  readonly #waiting: Waiting[] = []
  #writing = false
  #rows = 0

  /** Connects when it is first used. */
  constructor(url: string) {
    this.#url = url
  }

  /** Makes so many certificates of one: their serials are `prefix` and eight digits from 0 on. */
  async multiply(der: Buffer, prefix: string, count: number): Promise<void> {
    const connection = await this.#connect()
    const id = "UNHEX(LPAD(HEX(seq), 32, '0'))"
    const serial = `UNHEX(CONCAT('${prefix}', LPAD(seq, 8, '0')))`
    const sql = `INSERT INTO certificates SELECT ${id}, '${mount}', 'default', ${serial}, '${mount}', ?, 0, 0
      FROM seq_0_to_${count - 1}`
    await connection.query(sql, [der])
  }

  /** Resolves when the row is committed. */
  insert({ serial, der, notAfter }: Omit<Certified, 'fields'>): Promise<void> {
    const now = Date.now()
    const id = Buffer.alloc(16)
    id.writeUIntBE(now, 0, 6)
    id.writeUInt32BE(++this.#rows, 12)
    return new Promise((resolve, reject) => {
      const values = [id, mount, 'default', serial, mount, der, notAfter, now]
      this.#waiting.push({ values, resolve, reject })
      if (!this.#writing) {
        this.#writing = true
        setImmediate(() => void this.#write())
      }
    })
  }

  async find(serial: Buffer): Promise<Buffer> {
    const sql = 'SELECT der FROM certificates WHERE mount = ? AND serial = ?'
    const connection = await this.#connect()
    const [[row]] = await connection.execute<RowDataPacket[]>(sql, [mount, serial])
    return row?.der as Buffer
  }

  #connect(): Promise<Connection> {
    this.#opening ??= createConnection(this.#url).then(async (connection) => {
      await connection.query(table)
      return connection
    })
    return this.#opening
  }

  async #write(): Promise<void> {
    const connection = await this.#connect()
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, mostRows)
      const sql = `INSERT INTO certificates VALUES ${group.map(() => '(?,?,?,?,?,?,?,?)').join()}`
      try {
        await connection.execute(
          sql,
          group.flatMap(({ values }) => values),
        )
        for (const { resolve } of group) resolve()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#writing = false
  }
}
