// Plain JavaScript: on a clean clone there is only the system's Node 18. `npm run bench [-- options]`: set up with wrk,
// then run scripts/bench.ts under Node 24. `npm run bench -- --help` lists the options.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { setup } from './setup.mjs'

await setup({ bench: true })
process.exitCode = await launch([join(project, 'scripts', 'bench.ts'), ...process.argv.slice(2)])
