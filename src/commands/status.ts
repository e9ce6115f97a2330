import { readFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { Command, Option } from 'commander'
import { request as plainRequest } from '../http/nodehttp.ts'

interface Options {
  readonly address: string
  readonly ca?: string
  readonly json?: boolean
}

const patienceMilliseconds = 10_000
const mostLetters = 1 << 20

/** As in Vault's CLI: 0 unsealed (here: and serving), 1 error, 2 sealed. */
const sealedCode = 2

/** `strongroom status`: asks a running node. */
export const statusCommand = (): Command =>
  new Command('status')
    .description('ask a node for its state; exit code 0: it serves, 2: sealed, 1: it does not serve or answer')
    .addOption(
      new Option('--address <url>', 'http(s)://HOST:PORT or unix:/PATH; default VAULT_ADDR')
        .env('STRONGROOM_ADDRESS')
        .default(process.env.VAULT_ADDR || 'http://127.0.0.1:8200'),
    )
    .addOption(new Option('--ca <file>', 'PEM file of the CA that signed the server certificate').env('VAULT_CACERT'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const seal = await ask(options, '/v1/sys/seal-status')
      if (seal.status !== 200 || typeof seal.body.sealed !== 'boolean') throw refused(options, seal)
      const health = await ask(options, '/v1/sys/health')
      const { hsm, database } = health.body
      const state = { ...seal.body, hsm, database }
      if (options.json) console.log(JSON.stringify(state))
      else for (const [name, value] of Object.entries(state)) console.log(`${name.padEnd(16)} ${value}`)
      if (seal.body.sealed) process.exitCode = sealedCode
      else if (health.status !== 200)
        throw new Error(`${options.address} does not serve: its token is ${hsm}, its database ${database}`)
    })

interface Asked {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** @throws Error when the node does not answer, or not in JSON */
async function ask({ address, ca }: Options, path: string): Promise<Asked> {
  const { status, text } = await get(address, path, ca)
  try {
    return { status, body: JSON.parse(text) }
  } catch {
    throw new Error(`${address} is not a Strongroom: it answers ${status} without JSON`)
  }
}

const refused = ({ address }: Options, { status, body }: Asked): Error =>
  new Error(`${address} answers ${status}: ${Array.isArray(body.errors) ? body.errors.join('; ') : 'no status'}`)

function get(address: string, path: string, ca: string | undefined): Promise<{ status: number; text: string }> {
  const unix = address.startsWith('unix:')
  const url = URL.parse(path, unix ? 'http://localhost' : address)
  if (!url?.protocol.startsWith('http'))
    throw new Error(`${address} is no address: http://HOST:PORT, https://… or unix:PATH`)
  const send = url.protocol === 'https:' ? tlsRequest : plainRequest
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException, cut: string): void => {
      if (error.name === 'AbortError') reject(new Error(`${address} does not answer`))
      else reject(error.code === 'ECONNRESET' ? new Error(`${address} closed the connection ${cut}`) : error)
    }
    const request = send(
      url,
      {
        agent: false,
        signal: AbortSignal.timeout(patienceMilliseconds),
        ...(unix ? { socketPath: address.slice('unix:'.length) } : {}),
        ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
          if (text.length > mostLetters) response.destroy(new Error(`${address} is not a Strongroom: it does not end`))
        })
        response
          .once('end', () => resolve({ status: response.statusCode ?? 0, text }))
          .once('error', (error) => fail(error, 'before its answer ended'))
      },
    )
    const early = url.protocol === 'http:' ? 'without an answer: does it expect https?' : 'without an answer'
    request.once('error', (error) => fail(error, early)).end()
  })
}
