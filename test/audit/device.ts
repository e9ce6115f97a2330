import { createHmac, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../support/client.ts'
import { runDirectory } from '../support/directory.ts'

/** A line of an audit file. Which members there are depends on the test. */
export interface Line {
  readonly time: string
  readonly type: 'request' | 'response' | 'rotation'
  readonly auth: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>> & { readonly path: string; readonly id: string }
  readonly response?: Readonly<Record<string, unknown>>
  readonly rotation?: { readonly event: 'closed' | 'opened'; readonly file: string }
  readonly alarm?: { readonly path: string; readonly message: string }
  readonly error?: string
  readonly chain: { readonly incarnation: string; readonly sequence: number; readonly previous: string }
}

/** A file device of its own. */
export interface TestDevice {
  /** Without slash. */
  readonly path: string
  readonly directory: string
  readonly file: string
  /** Everything in the file. */
  text(): string
  lines(): Line[]
  /** Lines of one request path. */
  of(path: string): Line[]
  /** As sys/audit-hash answers. */
  hash(input: string): Promise<string>
  disable(): Promise<void>
}

/** Enables a file device in a fresh directory. */
export async function enable(root: Client, options: Readonly<Record<string, string>> = {}): Promise<TestDevice> {
  const path = `d${randomBytes(6).toString('hex')}`
  const directory = mkdtempSync(join(runDirectory(), 'audit-'))
  const file = join(directory, 'audit.log')
  const made = await root.post(`sys/audit/${path}`, { type: 'file', options: { file_path: file, ...options } })
  if (made.status !== 204) throw new Error(`${made.status} ${made.text}`)
  const device: TestDevice = {
    ...{ path, directory, file },
    text: () => readFileSync(file, 'utf8'),
    lines: () => linesOf(device.text().replaceAll(options.prefix ?? '\0', '')),
    of: (wanted) => device.lines().filter(({ request }) => request?.path === wanted),
    hash: async (input) => (await root.post(`sys/audit-hash/${path}`, { input })).string('data.hash'),
    async disable() {
      await root.delete(`sys/audit/${path}`)
    },
  }
  return device
}

export const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** The form of a hidden secret in a device's lines. */
export const hidden = /^hmac-sha256:[0-9a-f]{64}$/

export const hmac = (key: Buffer, text: string): string =>
  `hmac-sha256:${createHmac('sha256', key).update(text).digest('hex')}`
