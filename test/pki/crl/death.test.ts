import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openHold } from '../../attack/hold.ts'
import { type Cluster, openCluster, openHsm, Place } from '../../keys/support.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import type { TestToken } from '../../support/token.ts'
import {
  type BuilderNode,
  type Ca,
  createCa,
  createSet,
  hour,
  nodeAt,
  read,
  revoke,
  serialsOf,
  targetOf,
} from './world.ts'

let token: TestToken
let cluster: Cluster
let node: BuilderNode
beforeAll(async () => {
  token = await createTestedToken('crldeath')
  const hsm = await openHsm(token)
  const place = await Place.fresh()
  cluster = { hsm, place, custody: await openCluster(hsm, place) }
  await createSet(place.database)
  node = nodeAt(place.database)
}, 120_000)
afterAll(async () => {
  cluster.custody.close()
  await cluster.place[Symbol.asyncDispose]()
  await cluster.hsm[Symbol.asyncDispose]()
})

/** Kills a process that builds a list at one of its COMMITs, and releases its leases, as its supervisor does. */
async function die(when: 'before' | 'after', nth: number, ca: Ca, mount: string): Promise<void> {
  await using line = await openHold(cluster.place.url)
  const file = join(import.meta.dirname, 'fixtures/building.ts')
  const args = [file, line.url, JSON.stringify(token), ca.material, ca.certificate.der.toString('base64'), mount]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const [incarnation] = await once(child.stdout, 'data')
  const trapped = line.trap(when, nth)
  child.stdin.write('build\n')
  await trapped
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
  await node.database.forget([String(incarnation).trim()])
}

/**
 * COMMITs of a build: its lease, the revocations it takes in, its number, the list it publishes, the end of its lease.
 */
test.each([1, 2, 3, 4, 5].flatMap((nth) => [['before', nth] as const, ['after', nth] as const]))(
  'killed %s COMMIT %i of a build: the next list has all revocations, and a number of its own',
  async (when, nth) => {
    const ca = await createCa(cluster)
    const mount = randomUUID()
    const rows = await revoke(node.database, ca.crlIssuer, 3)
    const { complete: before } = await node.builder.build(targetOf(ca, mount))
    const [first, ...others] = [...rows, ...(await revoke(node.database, ca.crlIssuer, 2))]
    const again = { mount: randomUUID(), serials: [first?.serial ?? ''], notAfter: (first?.notAfter ?? 0) + hour }
    const expected = serialsOf([...others, ...(await revoke(node.database, ca.crlIssuer, 1, again))])
    await die(when, nth, ca, mount)
    const published = await node.database.snapshot((q) =>
      node.builder.lists.find(q, { mount, crlIssuer: ca.crlIssuer, site: 'default', scope: 'local', kind: 'complete' }),
    )
    const isOut = nth === 5 || (nth === 4 && when === 'after')
    expect(published?.number).toBe(isOut ? before.number + 1 : before.number)
    const { complete } = await node.builder.build(targetOf(ca, mount))
    expect(complete.number).toBeGreaterThan(published?.number ?? 0)
    expect(read(await node.whole(complete), ca).serials).toEqual(expected)
    expect(node.alarms).toEqual([])
  },
)
