import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Agent, get } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface NodeOptions {
  readonly workers?: number
  /** The behaviour of workers at their start: serve, hang, die, fail, pin, stuck, forgetful; brief: die soon after. */
  readonly order?: string
  /** Milliseconds and bytes that replace the supervisor's own. */
  readonly timing?: Record<string, number>
  readonly limits?: string
  readonly announceSeconds?: number
  /** YAML; requests go to the first. */
  readonly listeners?: string
  /** Its standard output and error; without `ready`, `output` and `log` then. */
  readonly streams?: number | Socket
}

const ownListener = "[{ address: '127.0.0.1:0' }]"

/** A supervisor process and everything below it. */
export class TestNode {
  readonly directory = mkdtempSync(join(tmpdir(), 'sr-node-'))
  readonly process: ChildProcess
  readonly output: string[] = []
  readonly log: Record<string, unknown>[] = []
  readonly ready: Promise<string>
  readonly ended: Promise<number | NodeJS.Signals | null>

  constructor(options: NodeOptions = {}) {
    this.order(options.order ?? 'serve')
    this.configure(options)
    const script = fileURLToPath(new URL('fixtures/supervise.ts', import.meta.url))
    const streams = options.streams ?? 'pipe'
    this.process = spawn(process.execPath, [script, this.#config, JSON.stringify(options.timing ?? {})], {
      // Through the channel it notices when the tests are killed.
      stdio: ['ignore', streams, streams, 'ipc'],
    })
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.ready = promise
    this.ready.catch(() => {})
    this.ended = new Promise((end) => this.process.once('close', (code, signal) => end(code ?? signal)))
    this.ended.then((ending) => reject(new Error(`ended with ${ending}`)))
    const { stdout, stderr } = this.process
    if (stdout === null || stderr === null) return
    createInterface(stdout).on('line', (line) => {
      this.output.push(line)
      resolve(line.replace('ready ', '').replace(/ .*/, ''))
    })
    createInterface(stderr).on('line', (line) => {
      this.log.push(line.startsWith('{') ? JSON.parse(line) : { text: line })
    })
  }

  get #config(): string {
    return join(this.directory, 'config.json')
  }

  get control(): string {
    return join(this.directory, 'control')
  }

  configure({ workers = 1, limits = '{}', announceSeconds = 0, listeners = ownListener }: NodeOptions): void {
    const text = `
listeners: ${listeners}
database: { url: 'mysql://nobody@localhost/none' }
pkcs11: { library: none, token: { slot: 0 }, pin: { prompt: true }, environment: { CONTROL: '${this.control}' } }
stateDirectory: ${this.directory}
workers: ${workers}
limits: ${limits}
drain: { announceSeconds: ${announceSeconds} }
log: { level: info }
`
    writeFileSync(this.#config, text)
  }

  /** Sets the behaviour of workers that start from now on. */
  order(word: string): void {
    writeFileSync(this.control, word)
  }

  /** Process ids of all workers that were ever started, in order. */
  get starts(): number[] {
    try {
      return readFileSync(`${this.control}.starts`, 'utf8').trim().split('\n').map(Number)
    } catch {
      return []
    }
  }

  /** One request on a connection of its own. */
  async ask(path: string): Promise<{ status: number; pid: number; answer: unknown }> {
    const { status, text } = await fetchAlone(`${await this.ready}${path}`)
    return { status, ...JSON.parse(text) }
  }

  /** Asks until so many different workers have answered, over broken connections; every answer by process id. */
  async askAll(path: string, workers: number): Promise<Map<number, unknown>> {
    const answers = new Map<number, unknown>()
    for (let round = 0; round < 50 && answers.size < workers; round++) {
      const reply = await this.ask(path).catch(() => undefined)
      if (reply) answers.set(reply.pid, reply.answer)
    }
    return answers
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** @throws Error with a code when the connection is refused or broken */
export function fetchAlone(url: string, agent: Agent | false = false): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, timeout: 20_000 }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text })).once('error', reject)
    })
    request.once('error', reject).once('timeout', () => request.destroy(new Error('no answer')))
  })
}

/** Whether a process exists and is not a zombie. */
export function alive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits until a claim holds. @throws Error naming it after the deadline */
export async function until(
  claim: string,
  holds: () => boolean | Promise<boolean>,
  milliseconds = 15_000,
): Promise<void> {
  const deadline = Date.now() + milliseconds
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not so in time: ${claim}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
