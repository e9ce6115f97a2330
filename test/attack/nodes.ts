import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Client, Reply } from '../support/client.ts'
import type { TestServer } from '../support/server.ts'

export const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A refusal: 4xx, or a 5xx that does not tell the finding. Never data. */
export function expectRefused(reply: Reply, about = ''): void {
  expect(reply.status, `${about}: ${reply.text}`).toBeGreaterThanOrEqual(400)
  expect(reply.body, about).toHaveProperty('errors')
  expect(reply.body, about).not.toHaveProperty('data')
  if (reply.status >= 500) expect(reply.text, about).toMatch(/^\{"errors":\["1 error occurred:\\n\\t\* internal error/)
}

export function expectServed(reply: Reply, about = ''): Reply {
  expect(reply.status, `${about}: ${reply.text}`).toBeLessThan(300)
  return reply
}

/** A client whose token has these policies. */
export async function clientWith(server: TestServer, policies: readonly string[], more = {}): Promise<Client> {
  const made = expectServed(await server.client().post('auth/token/create', { policies, ...more }))
  return server.client(made.string('auth.client_token'))
}

export const encrypt = async (client: Client, key: string, text = 'plain'): Promise<string> =>
  expectServed(await client.post(`transit/encrypt/${key}`, { plaintext: base64(text) })).string('data.ciphertext')

export const decrypt = (client: Client, key: string, ciphertext: string): Promise<Reply> =>
  client.post(`transit/decrypt/${key}`, { ciphertext })

/** Process ids of the direct children of a process. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(Number(name)) === pid)
    .map(Number)
}

/** Process ids of the workers that serve now, by the supervisor's log. */
export function serving(server: TestServer): number[] {
  const pids = new Map<number, number>()
  const ready = new Set<number>()
  for (const line of server.output().split('\n')) {
    if (!line.includes('"msg":"process ')) continue
    const { msg, pid, worker, workerPid, role } = JSON.parse(line)
    if (pid !== server.pid) continue
    if (msg === 'process started') pids.set(worker, workerPid)
    else if (msg === 'process serves' && role === 'worker') ready.add(worker)
    else ready.delete(worker)
  }
  return [...ready].map((worker) => pids.get(worker) ?? 0)
}

/** The workers that a supervisor has started, whether they serve or not. */
export const workersOf = (pid: number): number[] =>
  childrenOf(pid).filter((child) => commandLine(child).includes('/worker.ts'))

export const commandLine = (pid: number): string => proc(pid, 'cmdline').replaceAll('\0', ' ')
export const environmentOf = (pid: number): string => proc(pid, 'environ')
export const alive = (pid: number): boolean => !/^$|\) [ZX] /.test(proc(pid, 'stat'))

function parentOf(pid: number): number {
  const stat = proc(pid, 'stat')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** Empty when the process is gone. */
function proc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

/** Resolves when the condition has become true; the test's own time limit ends the wait. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(25)
}
