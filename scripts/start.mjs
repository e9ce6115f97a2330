// Plain JavaScript: on a clean clone there is only the system's Node, 18 or later.
// `npm start`: set up, then run scripts/embedded.ts.
import { dirname, join } from 'node:path'
import { asNamed, compiled, launch, project } from './launch.mjs'
import { endWithNpm } from './npm.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()
// For `cd LINK; npm start` the shell gives the directory as it was typed, and npm its --prefix.
const installation = asNamed([process.env.PWD, dirname(process.env.npm_package_json ?? '.')])
process.exitCode = await launch([join(project, 'scripts', 'embedded.ts'), installation], {
  ...compiled,
  ...process.env,
})
