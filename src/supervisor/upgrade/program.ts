import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * The program that an upgrade starts: links in the path by which this one was started are resolved again.
 * @param started the path, absolute and as typed
 * @returns its real path
 * @throws Error when it is not the src/main.ts of an installation, or belongs to neither root nor this user
 */
export function installedProgram(started: string): string {
  const program = realpathSync(started)
  if (!program.endsWith('/src/main.ts')) throw new Error(`${program} is not the src/main.ts of an installation`)
  return requireOwner(program)
}

/**
 * The Node that runs it: that of its installation, if the current Node came with the current installation.
 * @param program as installedProgram returned it
 * @param own the current program
 * @throws Error when it belongs to neither root nor this user
 */
export function installedNode(program: string, own: string, node = process.execPath): string {
  const installed = join(root(program), relative(root(own), node))
  return node.startsWith(`${root(own)}/`) && existsSync(installed) ? requireOwner(installed) : node
}

/** The directory of an installation, by its src/main.ts. */
const root = (program: string): string => dirname(dirname(program))

function requireOwner(path: string): string {
  const { uid } = statSync(path)
  if (uid === 0 || uid === process.getuid?.()) return path
  throw new Error(`${path} belongs to user ${uid}, neither to root nor to the user of this server`)
}
