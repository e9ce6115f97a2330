import { spawn } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { blocksOf } from './document.ts'

const project = resolve(import.meta.dirname, '../../..')

export interface Transcript {
  readonly code: number | null
  /** Both streams, in the order of writing; the last line names the block that failed, if one did. */
  readonly output: string
}

/**
 * Runs the marked blocks of a document in one bash, in order, as its reader would: `strongroom` is on the path, and the
 * folders that the documents name lie in `directory`. Ends whatever they have left running.
 * @param places further texts that the test replaces in the commands, such as an address
 */
export async function follow(
  name: string,
  directory: string,
  environment: Readonly<Record<string, string>>,
  places: Readonly<Record<string, string>> = {},
): Promise<Transcript> {
  const bin = join(directory, 'bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(join(project, 'bin/strongroom.mjs'), join(bin, 'strongroom'))
  const blocks = blocksOf(name).filter(({ runs }) => runs)
  const lines = blocks.flatMap(({ line, text }) => [`block='${name}:${line}'`, placed(text, directory, places)])
  const script = join(directory, 'commands')
  writeFileSync(
    script,
    ['set -euo pipefail', `trap 'echo "failed: $block" >&2' ERR`, 'set -E', ...lines, ''].join('\n'),
  )
  const inherited = Object.entries(process.env).filter(([variable]) => !/^(STRONGROOM|VAULT)_/.test(variable))
  const child = spawn('bash', [script], {
    cwd: directory,
    env: { ...Object.fromEntries(inherited), PATH: `${bin}:${process.env.PATH}`, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  // Also after the test's time is over.
  onTestFinished(() => endGroup(child.pid))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  // A server that the script leaves running would keep the streams open.
  const code = await new Promise<number | null>((done) => child.once('exit', done))
  endGroup(child.pid)
  return { code, output }
}

/** The folders of an installation, below the test's own, and the test's own `places` for the document's. */
function placed(text: string, directory: string, places: Readonly<Record<string, string>>): string {
  const own = Object.entries(places).reduce((so, [there, here]) => so.replaceAll(there, here), text)
  return own
    .replaceAll('/opt/strongroom', project)
    .replace(/\/(?=(etc|var\/lib|var\/log)\/strongroom\b)/g, `${directory}/`)
}

/** Ends the processes that a script has left. */
function endGroup(leader: number | undefined): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The script has left no processes.
  }
}
