import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { writingServer } from '../database.ts'
import { runDirectory } from '../directory.ts'

const lockSeconds = 100

/**
 * What the files of a run share, as JSON. The first file that asks makes it, and those that ask meanwhile wait: under a
 * lock of the database, which ends with the process that holds it, so that the next one makes it if the first dies.
 */
export async function oncePerRun<T>(name: string, make: () => Promise<T>): Promise<T> {
  const path = join(runDirectory(), `${name}.json`)
  if (!existsSync(path)) {
    const connection = await createConnection(await writingServer())
    try {
      const [rows] = await connection.query<RowDataPacket[]>('SELECT GET_LOCK(?, ?) AS got', [name, lockSeconds])
      if (rows[0]?.got !== 1) throw new Error(`no file of this run has made its ${name} in ${lockSeconds} s`)
      if (!existsSync(path)) {
        writeFileSync(`${path}.draft`, JSON.stringify(await make()))
        renameSync(`${path}.draft`, path)
      }
    } finally {
      await connection.end()
    }
  }
  return JSON.parse(readFileSync(path, 'utf8'))
}
