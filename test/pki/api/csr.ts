import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs openssl in a folder with these files; returns its output. */
export async function openssl(args: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'openssl-'))
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
    const { stdout } = await run('openssl', args, { cwd: directory, maxBuffer: 16 * 1024 * 1024 })
    return stdout
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const keyArguments: Readonly<Record<string, readonly string[]>> = {
  rsa: ['-newkey', 'rsa:2048'],
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  ed25519: ['-newkey', 'ed25519'],
}

/** A CSR made by openssl, PEM. @param subject as openssl writes it (`/CN=…`) @param extensions lines for -addext */
export const csrOf = (subject: string, extensions: readonly string[] = [], type = 'ec'): Promise<string> =>
  openssl([
    ...['req', '-new', '-nodes', '-keyout', 'key.pem', '-subj', subject, ...(keyArguments[type] ?? [])],
    ...extensions.flatMap((extension) => ['-addext', extension]),
  ])
