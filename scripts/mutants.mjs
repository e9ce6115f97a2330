// Plain JavaScript: on a clean clone there is only the system's Node 18. `npm run mutants [-- options]`: set up, then
// run scripts/mutants.ts under Node 24. `npm run mutants -- --help` lists the options.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { setup } from './setup.mjs'

await setup({ tests: true })
process.exitCode = await launch([join(project, 'scripts', 'mutants.ts'), ...process.argv.slice(2)])
