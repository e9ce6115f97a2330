import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { childrenOf } from '../bench/cpu.ts'
import type { Attack, Sent, Target } from './target.ts'

/** A node beside one attack. */
export interface Outcome {
  readonly sent: Sent
  readonly health: {
    /** Milliseconds of the slowest answer. */
    readonly worst: number
    readonly answers: number
    /** The reason of each failure: its status, the connection's error, or `no answer`. */
    readonly failures: readonly string[]
  }
  readonly workersReplaced: number
  readonly auditBytes: number
  /** The most that one worker had resident. */
  readonly peakBytes: number
}

/** Effects of an attack may come after its end. */
const afterwardsMilliseconds = 300
const patienceMilliseconds = 90_000

/** Attacks a node, and watches its health, workers, memory and audit file meanwhile. */
export async function besiege(target: Target, attack: Attack): Promise<Outcome> {
  await untilServed(target)
  const workers = childrenOf(target.pid)
  for (const pid of workers) forgetPeak(pid)
  const before = statSync(target.auditFile).size
  const probe = new Worker(new URL('probe.ts', import.meta.url), { workerData: { url: target.url } })
  await message(probe)
  const sent = await attack.run(target)
  await delay(afterwardsMilliseconds)
  const told = message(probe)
  probe.postMessage('end')
  const health = (await told) as Outcome['health']
  const alive = childrenOf(target.pid)
  return {
    sent,
    health,
    workersReplaced: workers.filter((pid) => !alive.includes(pid)).length,
    auditBytes: statSync(target.auditFile).size - before,
    peakBytes: Math.max(...alive.map(peakBytes)),
  }
}

const message = (probe: Worker): Promise<unknown> =>
  new Promise((resolve, reject) => probe.once('message', resolve).once('error', reject))

/** Resets the peak of resident memory (proc(5)). */
const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')

const peakBytes = (pid: number): number =>
  1024 * Number(/^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)

/** After a worker was lost, its replacement takes time to start. */
async function untilServed({ url }: Target): Promise<void> {
  const deadline = performance.now() + patienceMilliseconds
  while (performance.now() < deadline) {
    const served = await fetch(`${url}/v1/sys/health`).then(
      ({ status }) => status === 200,
      () => false,
    )
    if (served) return
    await delay(100)
  }
  throw new Error('the node does not serve')
}
