import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { done } from '../../api/node.ts'
import { type Answer, dataOf, type TestAuthority } from '../api/authority.ts'

/** Chains as relying parties have them, and their verdicts. */

const run = promisify(execFile)

/** Makes an intermediate under an issuer of the same mount. @returns its certificate, id and private key */
export async function intermediate(
  pki: TestAuthority,
  issuer: string,
  wanted: Answer,
  signing: Answer = {},
): Promise<{ readonly certificate: string; readonly id: string; readonly privateKey: unknown }> {
  const type = wanted.exported === true ? 'exported' : 'internal'
  const { csr, private_key: privateKey } = dataOf(await done(pki.post(`intermediate/generate/${type}`, wanted)))
  const ttl = { ttl: '8760h', ...signing }
  const { certificate } = dataOf(await done(pki.post(`issuer/${issuer}/sign-intermediate`, { csr, ...ttl })))
  const set = dataOf(await done(pki.post('intermediate/set-signed', { certificate })))
  const [id = ''] = set.imported_issuers as string[]
  return { certificate: String(certificate), id, privateKey }
}

/** The objections of openssl and GnuTLS to a chain, from leaf to root; '' if there are none. */
export async function objections(chain: readonly string[]): Promise<{ openssl: string; gnutls: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'chain-'))
  const [leaf = '', ...above] = chain
  const files = { leaf, above: above.join('\n'), root: above.at(-1) ?? '', chain: chain.join('\n') }
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), `${text}\n`)
    const objection = (command: string, ...args: readonly string[]): Promise<string> =>
      run(command, args, { cwd: directory }).then(
        () => '',
        ({ stdout, stderr }) => `${stdout}${stderr}`,
      )
    return {
      openssl: await objection('openssl', 'verify', '-x509_strict', '-CAfile', 'root', '-untrusted', 'above', 'leaf'),
      gnutls: await objection('certtool', '--verify-chain', '--infile', 'chain'),
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
