// Plain JavaScript: on a clean clone there is only the system's Node 20. `npm test [-- vitest arguments]`, `--wide`: the
// second environments: hsm/ on NSS instead of SoftHSM, store/ on a Galera cluster instead of one MariaDB.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { setup } from './setup.mjs'

const [wide, rest] = process.argv[2] === '--wide' ? [true, process.argv.slice(3)] : [false, process.argv.slice(2)]
const runs = wide
  ? [
      { name: 'nss', environment: { STRONGROOM_TEST_HSM: 'nss' }, words: ['test/hsm'] },
      // One file at a time: tests kill nodes, and two at once would cost the cluster its quorum.
      { name: 'galera', environment: { STRONGROOM_TEST_GALERA: '1' }, words: ['test/store', '--no-file-parallelism'] },
    ]
  : [{ name: 'all', environment: {}, words: [] }]

await setup({ tests: true, wide })
for (const { name, environment, words } of runs) {
  if (wide) console.log(`\n${words[0]} on ${name}`)
  const report = join(project, '.build', 'reports', `${name}.json`)
  const code = await launch(
    [
      join(project, 'node_modules', 'vitest', 'vitest.mjs'),
      ...['run', '--root', project, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
      ...words,
      ...rest,
    ],
    { ...process.env, ...environment },
  )
  if (code !== 0) process.exitCode = code
  if (code > 128) break
}
