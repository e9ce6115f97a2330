// Plain JavaScript: on a clean clone there is only the system's Node 20. `npm start`: set up, then run scripts/embedded.ts.
import { join } from 'node:path'
import { launch, project } from './launch.mjs'
import { endWithNpm } from './npm.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()
process.exitCode = await launch([join(project, 'scripts', 'embedded.ts')])
