import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { createDatabase, type TestDatabase } from '../database.ts'

/** A schema that is copied and otherwise left alone. */
export interface Original {
  readonly name: string
  readonly tables: readonly string[]
  /** Those with rows. */
  readonly filled: readonly string[]
}

/** Describes a database that will not change any more; nobody may dispose it. */
export async function original({ url }: TestDatabase): Promise<Original> {
  const name = new URL(url).pathname.slice(1)
  const connection = await createConnection(url)
  const filled: string[] = []
  try {
    const [rows] = await connection.query<RowDataPacket[]>('SHOW TABLES')
    const tables = rows.map((row): string => Object.values(row)[0])
    for (const table of tables) {
      const [some] = await connection.query<RowDataPacket[]>('SELECT 1 FROM ?? LIMIT 1', [table])
      if (some.length > 0) filled.push(table)
    }
    return { name, tables, filled }
  } finally {
    await connection.end()
  }
}

/** A new database with the same tables and rows. The product has no foreign keys or triggers, which LIKE leaves out. */
export const copyOf = ({ name, tables, filled }: Original): Promise<TestDatabase> =>
  createDatabase((copy) => [
    ...tables.map((table) => `CREATE TABLE ${copy}.\`${table}\` LIKE ${name}.\`${table}\``),
    ...filled.map((table) => `INSERT INTO ${copy}.\`${table}\` SELECT * FROM ${name}.\`${table}\``),
  ])
