import { readFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { Command, Option } from 'commander'

interface Options {
  readonly address: string
  readonly ca?: string
  readonly json?: boolean
}

/** As Vault's CLI: 0 unsealed, 1 error, 2 sealed. */
const sealedCode = 2

/** `strongroom status`: asks a running node. */
export const statusCommand = (): Command =>
  new Command('status')
    .description('ask a node for its state; exit code 0: unsealed, 2: sealed, 1: no answer')
    .addOption(
      new Option('--address <url>', 'http(s)://HOST:PORT or unix:/PATH')
        .env('STRONGROOM_ADDRESS')
        .default('http://127.0.0.1:8200'),
    )
    .option('--ca <file>', 'PEM file of the CA that signed the server certificate')
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const status = await sealStatus(options)
      if (options.json) console.log(JSON.stringify(status))
      else for (const [name, value] of Object.entries(status)) console.log(`${name.padEnd(16)} ${value}`)
      if (status.sealed) process.exitCode = sealedCode
    })

/** @throws Error when the node does not answer, or with its answer if that is not a status */
async function sealStatus({ address, ca }: Options): Promise<Record<string, unknown>> {
  const { status, text } = await get(address, '/v1/sys/seal-status', ca)
  let body: Record<string, unknown>
  try {
    body = JSON.parse(text)
  } catch {
    throw new Error(`${address} is no Strongroom: it answers ${status} without JSON`)
  }
  if (status !== 200 || typeof body.sealed !== 'boolean') {
    throw new Error(
      `${address} answers ${status}: ${Array.isArray(body.errors) ? body.errors.join('; ') : 'no status'}`,
    )
  }
  return body
}

function get(address: string, path: string, ca: string | undefined): Promise<{ status: number; text: string }> {
  const unix = address.startsWith('unix:')
  const url = unix ? new URL(path, 'http://localhost') : new URL(path, address)
  const send = url.protocol === 'https:' ? tlsRequest : plainRequest
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      {
        agent: false,
        timeout: 10_000,
        ...(unix ? { socketPath: address.slice('unix:'.length) } : {}),
        ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text })).once('error', reject)
      },
    )
    request.once('timeout', () => request.destroy(new Error(`${address} does not answer`)))
    request.once('error', reject)
    request.end()
  })
}
