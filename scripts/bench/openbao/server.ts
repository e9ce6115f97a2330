import type { ChildProcess } from 'node:child_process'
import { mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ended, ending, spawnBound, stop } from '../../embedded/child.ts'
import { type Api, ApiClient } from '../api.ts'
import { cpuMicroseconds } from '../cpu.ts'
import type { LoadRequest, Server } from '../server.ts'

/** Set by scripts/bench.mjs, which fetches it. */
const { STRONGROOM_BAO: bao = 'bao' } = process.env

/** Of its own, for one bench at a time. */
const [port, clusterPort] = [7811, 7812]

/** OpenBao as it is served by one node: raft on this disk, keys in its memory. */
export class OpenBao implements Api, AsyncDisposable {
  readonly url = `http://127.0.0.1:${port}`
  readonly #process: ChildProcess
  readonly rootToken: string
  readonly #client: ApiClient

  private constructor(process: ChildProcess, rootToken: string) {
    this.#process = process
    this.rootToken = rootToken
    this.#client = new ApiClient(this.url, rootToken)
  }

  /** @param directory a new one @returns initialised and unsealed, with Transit at transit/ */
  static async start(directory: string): Promise<OpenBao> {
    mkdirSync(join(directory, 'raft'), { recursive: true })
    const file = join(directory, 'openbao.json')
    writeFileSync(file, JSON.stringify(configuration(directory)))
    const log = openSync(join(directory, 'log'), 'a')
    const child = spawnBound(bao, ['server', `-config=${file}`], { stdio: ['ignore', log, log] })
    const url = `http://127.0.0.1:${port}`
    try {
      await using stranger = new ApiClient(url, '')
      const { keys_base64, root_token } = await untilReady(child, () =>
        stranger.call('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 }),
      )
      await stranger.call('PUT', 'sys/unseal', { key: (keys_base64 as string[])[0] })
      const openBao = new OpenBao(child, String(root_token))
      await untilReady(child, () => openBao.call('POST', 'sys/mounts/transit', { type: 'transit' }))
      return openBao
    } catch (error) {
      await stop(child, 10)
      throw error
    }
  }

  send(method: string, path: string, body?: object, client?: number): Promise<string> {
    return this.#client.send(method, path, body, client)
  }

  call(method: string, path: string, body?: object, client?: number): Promise<Record<string, unknown>> {
    return this.#client.call(method, path, body, client)
  }

  under(request: LoadRequest): Server {
    return { url: this.url, request, cpuMicroseconds: () => cpuMicroseconds(this.#process.pid ?? 0) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]()
    await stop(this.#process, 10)
  }
}

const configuration = (directory: string) => ({
  storage: { raft: { path: join(directory, 'raft'), node_id: 'bench' } },
  listener: { tcp: { address: `127.0.0.1:${port}`, tls_disable: true } },
  api_addr: `http://127.0.0.1:${port}`,
  cluster_addr: `http://127.0.0.1:${clusterPort}`,
  disable_mlock: true,
})

const patienceMilliseconds = 30_000

/** Repeats what a server refuses that has just begun. */
async function untilReady<T>(child: ChildProcess, work: () => Promise<T>): Promise<T> {
  const end = performance.now() + patienceMilliseconds
  const over = ended(child).then(() => {
    throw new Error(`OpenBao ${ending(child)}`)
  })
  over.catch(() => {})
  for (;;) {
    try {
      return await Promise.race([work(), over])
    } catch (error) {
      if (performance.now() > end || child.exitCode !== null) throw error
      await delay(100)
    }
  }
}
