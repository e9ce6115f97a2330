// Plain JavaScript: on a clean clone there is only the system's Node 18. `npm run bench [-- options]`: set up with wrk,
// then run scripts/bench.ts under Node 24. `npm run bench -- --help` lists the options.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { bao, fetchOpenBao } from './openbao/fetch.mjs'
import { setup } from './setup.mjs'

const words = process.argv.slice(2)
const openbao = words.includes('--openbao')

await setup({ bench: true, openbao })
if (openbao) await fetchOpenBao()
const environment = { ...process.env, ...(openbao ? { STRONGROOM_BAO: bao } : {}) }
process.exitCode = await launch([join(project, 'scripts', 'bench.ts'), ...words], environment)
