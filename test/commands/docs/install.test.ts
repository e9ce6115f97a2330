import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, expect, test } from 'vitest'
import { createDatabase } from '../../support/database.ts'
import { runDirectory } from '../../support/directory.ts'
import { freePort } from './port.ts'
import { follow } from './shell.ts'

const scripts = join(import.meta.dirname, '../../../scripts')
const name = `install_${process.pid}`

const database = await createDatabase()
afterAll(async () => {
  const connection = await createConnection({ uri: database.url, multipleStatements: true })
  await connection.query(`DROP DATABASE IF EXISTS ${name}; DROP USER IF EXISTS ${name}@localhost`)
  await connection.end()
  await database[Symbol.asyncDispose]()
})

test('the commands of docs/install.md lead to a node that serves', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'install-'))
  for (const folder of ['etc/strongroom', 'var/lib/strongroom/tokens', 'var/log/strongroom']) {
    mkdirSync(join(directory, folder), { recursive: true })
  }
  const socket = new URL(database.url).searchParams.get('socketPath') ?? ''
  writeFileSync(join(directory, 'my.cnf'), `[client]\nsocket=${socket}\nuser=root\n`)
  const port = await freePort()
  const places = {
    '/run/mysqld/mysqld.sock': socket,
    '0.0.0.0:8200': `127.0.0.1:${port}`,
    'localhost:8200': `localhost:${port}`,
    'DATABASE strongroom': `DATABASE ${name}`,
    'strongroom.*': `${name}.*`,
    'strongroom@localhost': `${name}@localhost`,
    'localhost/strongroom?': `localhost/${name}?`,
  }
  const { code, output } = await follow('install.md', directory, { MYSQL_HOME: directory }, places)
  expect(code, output).toBe(0)
  expect(output).toContain('vault:v1:')
}, 300_000)

test('the program is started by the Node that Debian 12 has, which is 18', () => {
  for (const file of ['start', 'setup', 'launch', 'npm', 'packages', 'step']) {
    expect(readFileSync(join(scripts, `${file}.mjs`), 'utf8'), file).not.toMatch(
      /import\.meta\.(dirname|filename|main)/,
    )
  }
})
