import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs `work` with a folder that exists until it ends. */
async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'relying-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A revocation list as openssl reads it; its signature is verified. */
export interface ReadList {
  readonly number: bigint
  /** The number of the complete list that a delta belongs to. */
  readonly base: bigint | undefined
  /** Serial numbers, in hexadecimal digits of lower case. */
  readonly serials: readonly string[]
}

/** @param ca the certificate of its signer, PEM */
export const readList = (pem: string, ca: string): Promise<ReadList> =>
  inFolder(async (folder) => {
    const [list, issuer] = [join(folder, 'list'), join(folder, 'ca')]
    writeFileSync(list, pem)
    writeFileSync(issuer, ca)
    const { stdout, stderr } = await run('openssl', ['crl', '-in', list, '-noout', '-text', '-CAfile', issuer])
    if (!`${stdout}${stderr}`.includes('verify OK')) throw new Error(`openssl does not verify the list: ${stderr}`)
    const numberAfter = (title: string): bigint | undefined => {
      const found = new RegExp(`${title}:[^\\n]*\\n\\s+(0x[0-9A-F]+|\\d+)`).exec(stdout)?.[1]
      return found === undefined ? undefined : BigInt(found)
    }
    return {
      number: numberAfter('X509v3 CRL Number') ?? -1n,
      base: numberAfter('X509v3 Delta CRL Indicator'),
      serials: [...stdout.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, digits = '']) => digits.toLowerCase()),
    }
  })

/** A responder's status of a serial number; openssl verifies the answer. @param serial with colons */
export const ocspStatus = (url: string, ca: string, serial: string): Promise<string> =>
  inFolder(async (folder) => {
    const issuer = join(folder, 'ca')
    writeFileSync(issuer, ca)
    const number = `0x${serial.replaceAll(':', '')}`
    const args = ['ocsp', '-issuer', issuer, '-CAfile', issuer, '-serial', number, '-url', url]
    const { stdout, stderr } = await run('openssl', args)
    if (!stderr.includes('Response verify OK')) throw new Error(`openssl does not verify the answer: ${stderr}`)
    return /^0x[0-9A-Fa-f]+: (\w+)/m.exec(stdout)?.[1] ?? stdout
  })

/** Whether openssl trusts a leaf, given a list. */
export const verifies = (leaf: string, ca: string, list: string): Promise<boolean> =>
  inFolder(async (folder) => {
    const files = { leaf, ca, list }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), `${text}\n`)
    const at = (name: string): string => join(folder, name)
    const args = ['verify', '-crl_check', '-CAfile', at('ca'), '-CRLfile', at('list'), at('leaf')]
    return run('openssl', args).then(
      () => true,
      (error: { stderr?: string; stdout?: string }) => {
        if (`${error.stderr}${error.stdout}`.includes('certificate revoked')) return false
        throw error
      },
    )
  })
