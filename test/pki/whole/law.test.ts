import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectServed } from '../../attack/nodes.ts'
import type { Reply } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/** Two nodes under load: an acknowledged revocation is on the next list, and numbers only rise. */

const stack = new AsyncDisposableStack()
const nodes: TestServer[] = []

beforeAll(async () => {
  const one = stack.use(await startServer({ workers: 2 }))
  nodes.push(one, stack.use(await startServer({ workers: 1, joins: one })))
}, 120_000)
afterAll(() => stack.disposeAsync())

const at = (index: number): TestServer => nodes[index % 2] as TestServer
const plain = (serial: unknown): string => String(serial).replaceAll(':', '').replace(/^0+/, '')
const served = async (reply: Promise<Reply>): Promise<Answer> => {
  const { body } = expectServed(await reply)
  return body === undefined ? {} : (dataOf({ body } as Reply) ?? {})
}

let mounts = 0
/** A CA of its own. */
async function createCa(settings: Answer = {}) {
  const path = `law${mounts++}`
  const root = at(0).client()
  expectServed(await root.post(`sys/mounts/${path}`, { type: 'pki', config: { max_lease_ttl: '87600h' } }))
  const made = await served(
    root.post(`${path}/root/generate/exported`, { common_name: 'R', key_type: 'ec', ttl: '80000h' }),
  )
  await served(root.post(`${path}/roles/r`, { allow_any_name: true, key_type: 'ec', generate_lease: true }))
  await served(root.post(`${path}/config/crl`, settings))
  const ca = String(made.certificate)
  return {
    path,
    ca,
    made,
    async issue(count: number, ttl = '24h') {
      const replies = await Promise.all(
        Array.from({ length: count }, (_, index) =>
          at(index).client().post(`${path}/issue/r`, { common_name: 'a.example', ttl }),
        ),
      )
      return replies.map((reply) => ({
        lease: String((expectServed(reply).body as { lease_id: string }).lease_id),
        serial: String(dataOf(reply).serial_number),
      }))
    },
    revoke: (index: number, serial: string) =>
      served(at(index).client().post(`${path}/revoke`, { serial_number: serial })),
    async list(index = 0, kind = 'crl') {
      const { number, base, serials } = await readList(
        expectServed(await at(index).client('').get(`${path}/${kind}/pem`)).text,
        ca,
      )
      return { number, base, serials: serials.map(plain) }
    },
    rotate: (index = 0, kind = 'rotate') => served(at(index).client().get(`${path}/crl/${kind}`)),
    status: (index: number, serial: string) => ocspStatus(`${at(index).url}/v1/${path}/ocsp`, ca, serial),
  }
}

test.each([false, true])(
  '200 revocations at once on two nodes, auto_rebuild %s: all are listed, once',
  async (auto) => {
    const pki = await createCa({ auto_rebuild: auto })
    const issued = await pki.issue(200)
    const before = await pki.list()
    await Promise.all(
      issued.map(async ({ serial }, index) => {
        await pki.revoke(index, serial)
        if (!auto && index % 20 === 0) expect((await pki.list(index + 1)).serials).toContain(plain(serial))
        if (index % 40 === 0) expect(await pki.status(index + 1, serial)).toBe('revoked')
      }),
    )
    if (auto) await pki.rotate(1)
    const after = await pki.list()
    expect(after.serials.toSorted()).toEqual(issued.map(({ serial }) => plain(serial)).toSorted())
    expect(after.number).toBeGreaterThan(before.number)
  },
  120_000,
)

test('100 leases revoked together are all on the next list', async () => {
  const pki = await createCa()
  const issued = await pki.issue(100)
  await served(at(1).client().post(`sys/leases/revoke-prefix/${pki.path}/issue/r`, { sync: true }))
  await pki.rotate(1)
  const { serials } = await pki.list()
  expect(serials.toSorted()).toEqual(issued.map(({ serial }) => plain(serial)).toSorted())
}, 120_000)

test('two nodes that revoke and rotate at once: numbers rise for each worker, no list is shorter than one before', async () => {
  const pki = await createCa()
  const issued = await pki.issue(40)
  let running = true
  const watch = async (): Promise<void> => {
    let last = { number: -1n, serials: [] as string[] }
    while (running) {
      const now = await pki.list(1)
      expect(now.number).toBeGreaterThanOrEqual(last.number)
      expect(now.serials).toEqual(expect.arrayContaining(last.serials))
      last = now
    }
  }
  const rotations = Array.from({ length: 20 }, (_, index) =>
    pki.rotate(index, index % 3 === 0 ? 'rotate-delta' : 'rotate'),
  )
  // The second node has one worker. Of several, one may serve the old list while another already serves a list whose
  // rotation is not answered yet.
  const watching = watch()
  watching.catch(() => undefined)
  try {
    await Promise.all([...rotations, ...issued.map(({ serial }, index) => pki.revoke(index, serial))])
  } finally {
    running = false
  }
  await watching
  expect((await pki.list()).serials).toHaveLength(40)
}, 120_000)

test('the base and its delta list exactly the revoked certificates', async () => {
  const pki = await createCa({ auto_rebuild: true, enable_delta: true })
  const issued = await pki.issue(60)
  const revoked: string[] = []
  for (let round = 0; round < 6; round++) {
    const some = issued.slice(round * 10, round * 10 + 10)
    await Promise.all(some.map(({ serial }, index) => pki.revoke(index, serial)))
    revoked.push(...some.map(({ serial }) => plain(serial)))
    await pki.rotate(round, round % 3 === 0 ? 'rotate' : 'rotate-delta')
    for (const index of [0, 1]) {
      const [base, delta] = [await pki.list(index), await pki.list(index, 'crl/delta')]
      expect(delta.base).toBe(base.number)
      expect([...base.serials, ...delta.serials].toSorted()).toEqual(revoked.toSorted())
    }
  }
}, 120_000)

test('an issuer that is deleted and imported again continues its numbers and entries', async () => {
  const pki = await createCa({ auto_rebuild: true })
  const issued = await pki.issue(5)
  for (const [index, { serial }] of issued.entries()) await pki.revoke(index, serial)
  await pki.rotate()
  const before = await pki.list()
  const [late] = await pki.issue(1)
  await pki.revoke(0, late?.serial ?? '')
  const root = at(0).client()
  expectServed(await root.delete(`${pki.path}/issuer/default`))
  await served(root.post(`${pki.path}/config/ca`, { pem_bundle: `${pki.ca}\n${pki.made.private_key}\n` }))
  await pki.rotate(1)
  const after = await pki.list()
  expect(after.number).toBeGreaterThan(before.number)
  expect(after.serials.toSorted()).toEqual(
    [...issued, ...(late ? [late] : [])].map(({ serial }) => plain(serial)).toSorted(),
  )
}, 120_000)
