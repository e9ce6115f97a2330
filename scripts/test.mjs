// Plain JavaScript: on a clean clone there is only the system's Node 18. `npm test [-- vitest arguments]`, `--wide`:
// the second environments: hsm/ and custodians' KEKs on NSS instead of SoftHSM, store/ on a Galera cluster instead of
// one MariaDB; and OpenBao's command line as a client. `--mysql`: store/ and two nodes on MySQL, alone and in Group
// Replication. Under CI, and wherever STRONGROOM_TEST_SEED gives a number, files and the tests within each run in
// random order.
import { join } from 'node:path'
import { compiled, launch, project } from './launch.mjs'
import { fetchMySql } from './mysql/fetch.mjs'
import { bao, fetchOpenBao } from './openbao/fetch.mjs'
import { setup } from './setup.mjs'

// One file at a time: tests kill nodes, and two at once would cost the cluster its quorum.
const onMysql = (kind) => ({
  name: `mysql-${kind}`,
  environment: { STRONGROOM_TEST_MYSQL: kind },
  words: ['test/store', 'test/engines', '--no-file-parallelism'],
})
const onGalera = { STRONGROOM_TEST_GALERA: '1' }
/** Kills nodes, and so runs alone on its cluster. */
const killing = 'test/store/galera.test.ts'
/** Of test/store, what uses no database, or a MariaDB of its own: the same there as anywhere. */
const apart = ['canonical', 'model', 'pool/clusters', 'pool/defaults', 'pool/engine', 'pool/retry', 'pool/tls']
const elsewhere = [killing, ...apart.map((name) => `test/store/${name}.test.ts`)]
const sets = {
  '--wide': [
    { name: 'nss', environment: { STRONGROOM_TEST_HSM: 'nss' }, words: ['test/hsm', 'test/keys/components.test.ts'] },
    {
      name: 'galera',
      environment: onGalera,
      words: ['test/store', ...elsewhere.flatMap((file) => ['--exclude', file])],
    },
    { name: 'galera-dying', environment: onGalera, words: [killing] },
    { name: 'openbao', environment: { STRONGROOM_TEST_BAO: bao }, words: ['test/clients/bao.test.ts'] },
  ],
  '--mysql': [onMysql('alone'), onMysql('multi'), onMysql('single')],
}
const set = Object.keys(sets).find((name) => name === process.argv[2])
const rest = process.argv.slice(set === undefined ? 2 : 3)
const runs = set === undefined ? [{ name: 'all', environment: {}, words: [] }] : sets[set]

const { CI, STRONGROOM_TEST_SEED: seed = CI ? String(Date.now() % 1_000_000) : undefined } = process.env
// Files whose tests tell one story say so themselves ({ shuffle: false }).
const order = ['--sequence.shuffle.files', '--sequence.shuffle.tests', `--sequence.seed=${seed}`]

await setup({ tests: true, wide: set === '--wide', mysql: set === '--mysql' })
if (set === '--mysql') await fetchMySql()
if (set === '--wide') await fetchOpenBao()
if (seed !== undefined) console.log(`Tests run in the order of STRONGROOM_TEST_SEED=${seed}, which repeats it`)
for (const { name, environment, words } of runs) {
  if (set !== undefined) console.log(`\n${words[0]} on ${name}`)
  const report = join(project, '.build', 'reports', name)
  const code = await launch(
    [
      join(project, 'node_modules', 'vitest', 'vitest.mjs'),
      ...['run', '--root', project],
      ...(seed === undefined ? [] : order),
      ...words,
      ...rest,
    ],
    { ...compiled, ...process.env, ...environment, STRONGROOM_TEST_REPORT: report },
  )
  if (code !== 0) process.exitCode = code
  if (code > 128) break
}
