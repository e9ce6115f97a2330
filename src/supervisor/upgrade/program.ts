import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * The program that an upgrade starts: a link in the path by which this one was started is followed anew.
 * @param started the path, absolute and as typed
 * @returns where it is
 * @throws Error when it is no installation's src/main.ts, or belongs to neither root nor this user
 */
export function installedProgram(started: string): string {
  const program = realpathSync(started)
  if (!program.endsWith('/src/main.ts')) throw new Error(`${program} is not the src/main.ts of an installation`)
  return requireOwner(program)
}

/**
 * The Node that runs it: the one of its installation, where the one that runs now came with the installation of now.
 * @param program as installedProgram returned it
 * @param own the program of now
 * @throws Error when it belongs to neither root nor this user
 */
export function installedNode(program: string, own: string, node = process.execPath): string {
  const installed = join(root(program), relative(root(own), node))
  return node.startsWith(`${root(own)}/`) && existsSync(installed) ? requireOwner(installed) : node
}

/** Of an installation, by its src/main.ts. */
const root = (program: string): string => dirname(dirname(program))

function requireOwner(path: string): string {
  const { uid } = statSync(path)
  if (uid === 0 || uid === process.getuid?.()) return path
  throw new Error(`${path} belongs to user ${uid}, neither to root nor to the user of this server`)
}
