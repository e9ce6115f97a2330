import { execFileSync } from 'node:child_process'
import { request } from 'node:http'
import { done, type TestNode } from '../../api/node.ts'
import { dataOf, type TestAuthority } from '../api/authority.ts'

export interface Raw {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** A request without a token. */
export function fetchRaw(
  node: TestNode,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const sent = request(`${node.url}/v1/${path}`, { method, headers, agent: false }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** The text of a list as openssl reads it. */
export const shown = (list: Buffer, form: 'DER' | 'PEM'): string =>
  execFileSync('openssl', ['crl', '-inform', form, '-noout', '-text', '-nameopt', 'RFC2253'], {
    input: list,
    encoding: 'utf8',
  })

export const numberOf = (text: string): number => Number(/X509v3 CRL Number: \n\s+(\d+)/.exec(text)?.[1])

/** The list of an issuer, as openssl shows it. */
export const textOf = async (node: TestNode, pki: TestAuthority, path: string): Promise<string> =>
  shown((await fetchRaw(node, `${pki.path}/${path}`)).body, 'DER')

/** Imports the first CA of a bundle. @returns its id */
export async function importCa(pki: TestAuthority, bundle: string): Promise<string> {
  const imported = await done(pki.post('issuers/import/bundle', { pem_bundle: bundle }))
  return String((dataOf(imported).imported_issuers as readonly string[])[0])
}
