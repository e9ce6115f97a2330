import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectServed } from '../../attack/nodes.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { createCa, plain, type WholeCa } from './ca.ts'
import { ask, type Strangers } from './strangers.ts'

/** OCSP at two nodes while one of them tidies and both revoke. */

const stack = new AsyncDisposableStack()
const nodes: TestServer[] = []
beforeAll(async () => {
  const one = stack.use(await startServer({ workers: 1 }))
  nodes.push(one, stack.use(await startServer({ workers: 1, joins: one })))
}, 120_000)
afterAll(() => stack.disposeAsync())

const at = (index: number): TestServer => nodes[index % 2] as TestServer

const clients = 8
/** Revoked certificates that end one after the other, and how many seconds they last. */
const ending = 40
const seconds = { shortest: 8, longest: 16 }

/** Revokes certificates one after the other, each after both nodes have answered `good` about it. */
function revokeLasting(ca: WholeCa, strangers: Strangers) {
  const lasting: string[] = []
  let running = true
  const work = async (): Promise<void> => {
    for (let turn = 0; running; turn++) {
      const [one, living] = [await ca.leaf(at(turn)), await ca.leaf(at(turn))]
      for (const node of nodes) expect(await ca.status(node, 'ocsp', one.serial)).toBe('good')
      strangers.watch({ ...living, kind: 'living' })
      await ca.revoke(at(turn), one.serial)
      strangers.watch({ ...one, kind: 'revoked' })
      lasting.push(one.serial)
      await delay(100)
    }
  }
  const done = work()
  done.catch(() => undefined)
  return {
    /** @returns the serial numbers */
    async stop() {
      running = false
      await done
      return lasting
    },
  }
}

/**
 * Issues and revokes ending certificates, and tidies until they are gone.
 * @returns the number of revocations removed
 */
async function tidyEnding(ca: WholeCa, strangers: Strangers, auto: boolean): Promise<number> {
  for (let index = 0; index < ending; index++) {
    const life = seconds.shortest + (index * (seconds.longest - seconds.shortest)) / ending
    const one = await ca.leaf(at(index), `${Math.ceil(life)}s`)
    expect((await ca.revoke(at(index), one.serial)).state).toBe('revoked')
    strangers.watch({ ...one, kind: 'ending' })
  }
  const order = { tidy_revoked_certs: true, safety_buffer: 1, page_size: 5 }
  let removed = 0
  for (let turn = 0; removed < ending; turn++) {
    // Otherwise tidy itself has the list built that carries ended entries once more.
    if (auto) await ca.rotate(at(1))
    const status = await ca.tidy(at(0), { ...order, tidy_cert_store: turn % 2 === 0 })
    expect(status).toMatchObject({ state: 'Finished', error: null })
    removed += Number(status.revoked_cert_deleted_count)
  }
  return removed
}

test.each([true, false])(
  'auto_rebuild %s: OCSP during tidy says revoked until the end of a certificate, and good of a good one',
  async (auto) => {
    const ca = await createCa(at(0), { auto_rebuild: auto })
    const strangers = ask(
      nodes.map(({ url }) => `${url}/v1/${ca.path}/ocsp`),
      ca.pem,
      clients,
    )
    const revoking = revokeLasting(ca, strangers)
    const [tidying] = await Promise.allSettled([tidyEnding(ca, strangers, auto)])
    const [revoked] = await Promise.allSettled([revoking.stop(), strangers.stop()])
    const { told, wrong } = strangers
    // Checked first: other failures may come from the same fault.
    expect(wrong).toEqual([])
    expect(tidying).toEqual({ status: 'fulfilled', value: ending })
    if (revoked.status === 'rejected') throw revoked.reason
    const lasting = revoked.value
    for (const answer of ['revoked revoked', 'living good', 'ending revoked', 'GET', 'POST'])
      expect(told.get(answer), answer).toBeGreaterThan(200)
    // The clients saw certificates disappear.
    expect(told.get('ending good')).toBeGreaterThan(0)
    expect(told.get('tryLater') ?? 0).toBeLessThan((told.get('GET') ?? 0) / 100)
    expect(await ca.keys(at(1), 'certs/revoked')).toEqual(lasting.toSorted())
    await ca.rotate(at(1))
    expect((await ca.list(at(0), 'crl/pem')).serials.toSorted()).toEqual(lasting.map(plain).toSorted())
    for (const node of nodes) {
      const metrics = expectServed(await node.client().get('sys/metrics?format=prometheus')).text
      expect(metrics).not.toMatch(/^strongroom_pki_crl_alarms(?:\{[^}]*\})? [1-9]/m)
    }
  },
  120_000,
)
