import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'
import type { TestDatabase } from '../support/database.ts'
import { runDirectory } from '../support/directory.ts'

/** A statement without its values, and the most rows that the server read for one run of it. */
export interface Statement {
  readonly text: string
  readonly examined: number
}

/** A MariaDB that records every statement, and how many rows it read for it. */
export interface Journal extends AsyncDisposable {
  readonly database: TestDatabase
  /** Runs SQL as the owner of the database. */
  sql(text: string, values?: readonly unknown[]): Promise<RowDataPacket[]>
  /** Records the statements of sessions that begin from now on. */
  begin(): Promise<void>
  statements(): Promise<readonly Statement[]>
}

const schema = 'growth'

/** For a disk without a journal of its own, so that filling takes less than a minute. */
const quick = [
  'SET GLOBAL innodb_buffer_pool_size = 1 << 30',
  'SET GLOBAL innodb_log_file_size = 1 << 30',
  'SET GLOBAL innodb_flush_log_at_trx_commit = 0',
]

/** The slow log takes everything. Rows that the storage engine filters out are not counted, so it must not filter. */
const everything = [
  "SET GLOBAL log_output = 'TABLE', GLOBAL long_query_time = 0, GLOBAL min_examined_row_limit = 0",
  "SET GLOBAL log_slow_filter = '', GLOBAL log_slow_rate_limit = 1, GLOBAL slow_query_log = ON",
  "SET GLOBAL optimizer_switch = 'index_condition_pushdown=off'",
]

export async function openJournal(): Promise<Journal> {
  const stack = new AsyncDisposableStack()
  const directory = mkdtempSync(join(runDirectory(), 'growth-'))
  const { url } = stack.use(await startMariaDb({ directory, schema, durable: false }))
  const sql: Journal['sql'] = async (text, values = []) => {
    await using connection = await createConnection(url)
    return (await connection.query<RowDataPacket[]>(text, [...values]))[0]
  }
  for (const setting of quick) await sql(setting.replace('1 << 30', String(2 ** 30)))
  const none = async () => undefined
  return {
    database: { url, urls: [url], [Symbol.asyncDispose]: none },
    sql,
    async begin() {
      for (const setting of everything) await sql(setting)
    },
    async statements() {
      const rows = await sql(`SELECT sql_text, rows_examined FROM mysql.slow_log WHERE db = '${schema}'
        AND sql_text NOT LIKE '%mysql.slow_log%'`)
      const most = new Map<string, number>()
      for (const { sql_text: run, rows_examined: examined } of rows) {
        const text = withoutValues(String(run))
        most.set(text, Math.max(most.get(text) ?? 0, Number(examined)))
      }
      return [...most].map(([text, examined]) => ({ text, examined }))
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** One text for all runs of a statement: values and lengths of lists are left out. */
const withoutValues = (text: string): string =>
  text
    .replace(/(?:_utf8mb4 )?x?'(?:[^'\\]|\\.|'')*'/gs, '?')
    .replace(/\b\d[\d.e+]*\b/g, '?')
    .replace(/\s+/g, ' ')
    .replace(/(\(\?(?:, ?\?)*\)|\?)(?:, ?\1)+/g, '$1, …')
    .trim()
