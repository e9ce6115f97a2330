import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A CA that openssl made: its certificate, its key, and both in one text. */
export function bundleOf(
  name: string,
  key: readonly string[] = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  usages = 'keyCertSign,cRLSign',
) {
  const directory = mkdtempSync(join(tmpdir(), 'ca-'))
  try {
    const args = ['req', '-x509', '-new', '-nodes', '-days', '3650', '-subj', `/CN=${name}`, '-newkey', ...key]
    const extensions = ['basicConstraints=critical,CA:TRUE', `keyUsage=critical,${usages}`]
    execFileSync(
      'openssl',
      [...args, ...extensions.flatMap((line) => ['-addext', line]), '-keyout', 'key', '-out', 'cert'],
      { cwd: directory, stdio: 'ignore' },
    )
    const read = (file: string): string => readFileSync(join(directory, file), 'utf8')
    const [certificate, privateKey] = [read('cert'), read('key')]
    return { certificate, privateKey, bundle: `${certificate}${privateKey}` }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
