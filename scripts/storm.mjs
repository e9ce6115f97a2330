// Plain JavaScript: on a clean clone there is only the system's Node 18. `npm run storm [-- options]`: set up, then run
// scripts/storm.ts under Node 24. `npm run storm -- --help` lists the options.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { setup } from './setup.mjs'

await setup()
process.exitCode = await launch([join(project, 'scripts', 'storm.ts'), ...process.argv.slice(2)])
