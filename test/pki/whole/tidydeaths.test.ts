import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { useDoomed } from '../../attack/deaths/doomed.ts'
import { expectServed, until } from '../../attack/nodes.ts'
import type { Client } from '../../support/client.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { createCa, plain, type WholeCa } from './ca.ts'
import { dieOf, entriesOf, type Step, titleOf } from './deathsteps.ts'

/** A node that dies while it tidies several mounts; another one survives and continues the runs. */

const world = useDoomed()

interface TidyStep extends Step {
  readonly settings: Answer
  /** The state when the node has died: certificates and revocations removed, entries left. */
  readonly done: readonly [certificates: number, revocations: number, entries: number]
}

/** Tidy has two lists built: one that carries ended entries once more, and at the end one without them. */
const byRevocation = {}
const byItself = { auto_rebuild: true, enable_delta: true, unified_crl: true }

const recorded = { name: 'the run is recorded', mark: 'INSERT INTO `pki_tidies`' }
const certificates = { name: 'certificates go', mark: 'DELETE FROM `pki_certificates`' }
const carrying = { name: 'the carrying list is out', mark: 'INSERT INTO `pki_crls`' }
const entries = { name: 'entries leave the segments', mark: 'INSERT INTO `pki_segments`' }
const revocations = { name: 'revocations go', mark: 'DELETE FROM `pki_revocations`' }
const lastNumber = { name: 'the last list has a number', mark: 'UPDATE `pki_crl_numbers`', nth: 2 }
const end = { name: 'the run ends', mark: '"state":"Finished"' }

/** The steps of each death, each in a mount of its own. */
const deaths: readonly (readonly TidyStep[])[] = [
  [
    { when: 'before', ...lastNumber, settings: byRevocation, done: [7, 7, 3] },
    { when: 'after', ...certificates, settings: byItself, done: [5, 0, 10] },
    { when: 'before', ...entries, settings: byItself, done: [7, 0, 10] },
  ],
  [
    { when: 'after', ...recorded, settings: byItself, done: [0, 0, 10] },
    { when: 'after', ...carrying, settings: byRevocation, done: [7, 0, 10] },
  ],
  [
    { when: 'before', ...end, settings: byItself, done: [7, 7, 3] },
    { when: 'after', ...revocations, settings: byItself, done: [7, 5, 3] },
    { when: 'after', ...entries, settings: byItself, done: [7, 0, 3] },
  ],
]

/** A CA with acknowledged revocations, some of certificates that have ended. */
interface Tidied {
  readonly ca: WholeCa
  readonly step: TidyStep
  readonly ended: readonly string[]
  readonly endsAt: number
  /** Serial numbers of lasting certificates whose revocation was acknowledged. */
  readonly revoked: string[]
  readonly good: string
  /** The number of the last list seen. */
  number: bigint
  /** Revocations that are under way. */
  pending: Promise<unknown>
}

const order = { tidy_cert_store: true, tidy_revoked_certs: true, safety_buffer: 1, page_size: 5 }

async function prepare(step: TidyStep): Promise<Tidied> {
  const { first } = world
  const ca = await createCa(first, { allow_expired_cert_revocation: true, ...step.settings })
  const short = await Promise.all(Array.from({ length: 7 }, () => ca.leaf(first, '8s')))
  const revoked = await Promise.all(Array.from({ length: 3 }, () => ca.issue(first)))
  const ended = short.map(({ serial }) => serial)
  await Promise.all([...ended, ...revoked].map((serial) => ca.revoke(first, serial)))
  const endsAt = Math.max(...short.map((leaf) => leaf.end))
  const good = await ca.issue(first)
  return { ca, step, ended, endsAt, revoked, good, number: 0n, pending: Promise.resolve() }
}

/** By the step. */
const tidied = new Map<TidyStep, Tidied>()
beforeAll(async () => {
  const all = await Promise.all(deaths.flat().map(prepare))
  for (const one of all) tidied.set(one.step, one)
  await delay(Math.max(0, ...all.map(({ endsAt }) => endsAt + 1500 - Date.now())))
  // With byRevocation, tidy itself has the list built that carries ended entries once more.
  for (const { ca, step } of all) if (step.settings === byItself) await ca.rotate(world.first)
  // The node looks for interrupted runs every minute: the first minute begins here.
  await world.first.stop()
  await world.first.start()
}, 90_000)

const statusOf = async ({ ca: { path } }: Tidied): Promise<Answer> =>
  dataOf(expectServed(await world.root.get(`${path}/tidy-status`)))

/**
 * The law that holds at any moment, at both nodes.
 * @param isBuilt whether a list was built since the last revocation
 */
async function expectLaw(one: Tidied, isBuilt = one.step.settings === byRevocation): Promise<void> {
  const { ca, revoked, good } = one
  for (const node of [world.first, world.second]) {
    expect(await ca.statuses(node, 'ocsp', revoked)).toEqual(revoked.map(() => 'revoked'))
    expect(await ca.statuses(node, 'ocsp', [good])).toEqual(['good'])
    const { number, serials } = await ca.list(node, 'crl/pem')
    if (isBuilt) expect(serials).toEqual(expect.arrayContaining(revoked.map(plain)))
    expect(number).toBeGreaterThanOrEqual(one.number)
    one.number = number
  }
}

describe('killed while it tidies', { shuffle: false }, () => {
  test.each(deaths.map((steps) => [titleOf(steps), steps] as const))(
    '%s: no acknowledged revocation is missing',
    async (_, steps) => {
      const all = steps.map((step) => tidied.get(step) as Tidied)
      const begin = (path: string) => (doomed: Client) => doomed.post(`${path}/tidy`, order)
      await dieOf(
        world,
        all.map(({ ca, step }) => ({ ca, step, begin: begin(ca.path) })),
      )
      for (const one of all) {
        const { step } = one
        await expectLaw(one, true)
        const { state, cert_store_deleted_count: stored, revoked_cert_deleted_count: revoked } = await statusOf(one)
        expect([state, stored, revoked, await entriesOf(world, one.ca)], step.name).toEqual(['Running', ...step.done])
        // The list may have to wait until the lease of the dead node has expired.
        const late = await one.ca.issue(world.first)
        one.pending = one.ca.revoke(world.first, late).then(() => one.revoked.push(late))
        one.pending.catch(() => undefined)
      }
    },
    60_000,
  )

  test('each run goes on elsewhere and ends, and lists name what is revoked and nothing else', async () => {
    for (const one of tidied.values()) {
      await until(async () => {
        await delay(100)
        return (await statusOf(one)).state !== 'Running'
      })
      const { ca, ended, revoked } = one
      await one.pending
      const counts = { cert_store_deleted_count: ended.length, revoked_cert_deleted_count: ended.length }
      expect(await statusOf(one)).toMatchObject({ state: 'Finished', error: null, ...counts })
      expect(await ca.keys(world.first, 'certs/revoked')).toEqual(revoked.toSorted())
      await expectLaw(one)
      const before = one.number
      await ca.rotate(world.first)
      await expectLaw(one, true)
      expect(one.number).toBeGreaterThan(before)
      const paths = one.step.settings === byItself ? ['crl', 'unified-crl'] : ['crl']
      for (const path of paths)
        expect((await ca.list(world.second, `${path}/pem`)).serials.toSorted()).toEqual(revoked.map(plain).toSorted())
    }
  }, 150_000)

  test('another run can begin, and nobody was taken for an intruder', async () => {
    for (const { ca } of tidied.values())
      expect(await ca.tidy(world.second, order)).toMatchObject({ state: 'Finished', revoked_cert_deleted_count: 0 })
    for (const node of [world.first, world.second]) {
      const metrics = expectServed(await node.client().get('sys/metrics?format=prometheus')).text
      expect(metrics).not.toMatch(/^strongroom_pki_crl_alarms(?:\{[^}]*\})? [1-9]/m)
    }
  }, 60_000)
})
