import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/*
 * A thread of its own, so that the attacker's work does not count as the server's: asks sys/health every few
 * milliseconds over connections that are kept, says `served` at the first answer, and on request tells how long the
 * slowest one took.
 */

const everyMilliseconds = 20
const patienceMilliseconds = 20_000
/** Requests without an answer so far; more are not sent to a silent node. */
const mostPending = 4
const { url } = workerData as { readonly url: string }
const agent = new Agent({ keepAlive: true })
const pending = new Set<number>()
let worst = 0
let answers = 0
const failures: string[] = []

function ask(): void {
  const began = performance.now()
  pending.add(began)
  const settle = (failure?: string): void => {
    if (!pending.delete(began)) return
    worst = Math.max(worst, performance.now() - began)
    if (failure !== undefined) failures.push(failure)
    else if (++answers === 1) parentPort?.postMessage('served')
  }
  const asked = request(`${url}/v1/sys/health`, { agent }, (response) => {
    response
      .on('end', () => settle(response.statusCode === 200 ? undefined : String(response.statusCode)))
      .on('error', () => settle('cut off'))
      .resume()
  })
  asked.on('error', ({ message }) => settle(message)).end()
}

const timer = setInterval(() => pending.size < mostPending && ask(), everyMilliseconds)

/** Sends one more request after the attack, and waits for all answers. */
async function end(): Promise<void> {
  clearInterval(timer)
  ask()
  const deadline = performance.now() + patienceMilliseconds
  while (pending.size > 0 && performance.now() < deadline) await delay(everyMilliseconds)
  parentPort?.postMessage({ worst, answers, failures: [...failures, ...[...pending].map(() => 'no answer')] })
  parentPort?.close()
  agent.destroy()
}
parentPort?.once('message', () => void end())
