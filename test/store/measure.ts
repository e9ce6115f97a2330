/**
 * Prints the store's costs on this machine: `node test/store/measure.ts`. A private MariaDB, durable commits.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'
import { TestLog } from './coherence/testlog.ts'
import { RemoteWorker } from './fleet.ts'
import { counters, open, policies, policy } from './support.ts'

const directory = mkdtempSync(join(tmpdir(), 'sr-'))
const server = await startMariaDb({ directory: join(directory, 'db'), schema: 'first', durable: true })
const url = `mysql://root@localhost/first?socketPath=${encodeURIComponent(server.socket)}`

/** Median, p95 and CPU of repeating something, in microseconds. */
async function time(name: string, repeats: number, work: (n: number) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < Math.min(50, repeats); n++) await work(-1 - n)
  const took: number[] = []
  const cpu = process.cpuUsage()
  for (let n = 0; n < repeats; n++) {
    const start = performance.now()
    await work(n)
    took.push((performance.now() - start) * 1000)
  }
  const { user, system } = process.cpuUsage(cpu)
  took.sort((a, b) => a - b)
  const at = (share: number): string => (took[Math.floor(share * took.length)] ?? 0).toFixed(0)
  console.log(`${name}: median ${at(0.5)} µs, p95 ${at(0.95)} µs, CPU ${((user + system) / repeats).toFixed(0)} µs`)
}

try {
  const workers: RemoteWorker[] = []
  using log = new TestLog()
  await using database = await open(url, { sharedLog: log.place() })
  await database.migrate()
  const table = database.table(policies)
  const cache = database.cache({ table: 'policies', limit: 1000, load: (q, id) => table.get(q, id) })
  const row = await database.transaction((tx) => table.insert(tx, policy('measured', 'x'.repeat(500))))
  const material = crypto.randomUUID()
  await database.transaction((tx) => database.table(counters).insert(tx, { material, used: 0 }))

  await time('sealed row, read and verified', 2000, () => database.read((q) => table.get(q, row.id)))
  await time('the same, unverified', 2000, () =>
    database.read((q) => database.unverified(policies).find(q, { id: row.id })),
  )
  await time('transaction of one insert', 300, (n) => database.transaction((tx) => table.insert(tx, policy(`t${n}`))))
  const group = database.group(policies)
  await time('64 rows by group insert', 50, (n) =>
    Promise.all(Array.from({ length: 64 }, (_, i) => group.insert(policy(`g${n}-${i}`)))),
  )
  await time('transaction that touches, no worker', 300, () =>
    database.transaction(async (tx) => {
      await database.table(counters).add(tx, { material }, { used: 1 })
      tx.touch('policies', row.id)
    }),
  )

  await database.start()
  await cache.get(row.id)
  await time('cache.get after peek failed (fill)', 300, async () => {
    cache.clear()
    await cache.get(row.id)
  })
  let hits = 0
  const looks = 1_000_000
  const start = performance.now()
  for (let n = 0; n < looks; n++) {
    if (cache.peek(row.id)) hits++
    if (n % 10_000 === 0) await new Promise(setImmediate)
  }
  console.log(`peek: ${(((performance.now() - start) * 1e6) / looks).toFixed(0)} ns, ${hits} hits of ${looks}`)

  for (const count of [1, 2, 4]) {
    while (workers.length < count - 1) workers.push(await RemoteWorker.start(url, log.place()))
    await time(`transaction that touches, ${count} worker(s)`, 200, () =>
      database.transaction(async (tx) => {
        await database.table(counters).add(tx, { material }, { used: 1 })
        tx.touch('policies', row.id)
      }),
    )
  }
  for (const worker of workers) await worker[Symbol.asyncDispose]()
} finally {
  await server[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
}
