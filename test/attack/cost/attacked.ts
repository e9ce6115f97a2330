import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { besiege, type Outcome } from '../../../scripts/storm/siege.ts'
import { type Attack, prepareTarget, type Target } from '../../../scripts/storm/target.ts'
import { readMetric } from '../../support/metric.ts'
import { startServer, type TestServer } from '../../support/server.ts'

/** Generous: a machine that is busy answers late, a worker that is held up does not answer at all. */
const hungMilliseconds = 20_000
/** `limits.workerMemoryMebibytes`, as it is by default. */
const mostResidentBytes = 1024 * 2 ** 20
/** The two audit lines of a request without data. */
const linesBytes = 4096

/** A node of one worker for the attacks of one file. */
export function useTarget(): {
  withstand(attack: Attack): Promise<Outcome>
  /** The requests that the node has served so far. */
  served(): Promise<number>
} {
  let server: TestServer | undefined
  let target: Target | undefined
  beforeAll(async () => {
    server = await startServer()
    const root = server.client()
    const auditFile = join(server.stateDirectory, 'audit', 'audit.log')
    const call = async (method: string, path: string, body?: object): Promise<unknown> => {
      const reply = await root.call(method, path, body)
      if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`)
      return reply.body
    }
    const pem = await prepareTarget(call, auditFile)
    const authority = Buffer.from(pem.replace(/-----[A-Z ]+-----/g, ''), 'base64')
    target = { url: server.url, rootToken: server.rootToken, pid: server.pid, auditFile, authority }
  }, 120_000)
  afterAll(() => server?.[Symbol.asyncDispose]())
  return {
    /**
     * Attacks, and expects that nobody else notices: health answers, no worker is replaced, audit and memory stay
     * bounded.
     */
    async withstand(attack) {
      if (target === undefined) throw new Error('the node starts before the first test')
      const outcome = await besiege(target, attack)
      const { sent, health, workersReplaced, auditBytes, peakBytes } = outcome
      expect(health.answers).toBeGreaterThan(0)
      expect(health.failures).toEqual([])
      expect(health.worst).toBeLessThan(hungMilliseconds)
      expect(workersReplaced).toBe(0)
      expect(auditBytes).toBeLessThanOrEqual(sent.bytes + sent.requests * linesBytes)
      expect(peakBytes).toBeLessThan(mostResidentBytes)
      return outcome
    },
    async served() {
      if (server === undefined) throw new Error('the node starts before the first test')
      return readMetric(server.client(), 'vault_core_handle_request_count')
    },
  }
}
