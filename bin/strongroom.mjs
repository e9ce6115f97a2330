#!/usr/bin/env node
import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { asNamed, launch } from '../scripts/launch.mjs'

const installation = asNamed([dirname(dirname(placed(process.argv[1])))])
process.exitCode = await launch([join(installation, 'src', 'main.ts'), ...process.argv.slice(2)])

/**
 * Where this script lies: links to itself (in a directory of PATH, say) are followed, links to its directories are not.
 */
function placed(path) {
  return lstatSync(path).isSymbolicLink() ? placed(resolve(dirname(path), readlinkSync(path))) : path
}
