import { beforeAll, describe, expect, test } from 'vitest'
import { useDoomed } from '../../attack/deaths/doomed.ts'
import { expectServed } from '../../attack/nodes.ts'
import type { Client } from '../../support/client.ts'
import type { TestServer } from '../../support/server.ts'
import type { Answer } from '../api/authority.ts'
import { createCa, plain, type WholeCa } from './ca.ts'
import { dieOf, type Step, titleOf } from './deathsteps.ts'

/**
 * A node that dies while it builds lists of several mounts: of a site and of all, deltas and shards; another one
 * survives.
 */

const world = useDoomed()

interface BuildStep extends Step {
  readonly settings: Answer
  /** The work at which the node dies. @param serial of a certificate that is not revoked yet */
  readonly ask: (doomed: Client, ca: WholeCa, serial: string) => Promise<unknown>
  /** Whether that work is the revocation of the certificate. */
  readonly isRevocation?: true
}

const byItself = { auto_rebuild: true, enable_delta: true, unified_crl: true }
const byRevocation = {}
const sharded = { crl_shards: 2 }
const urls = {
  crl_distribution_points: 'http://crl.example/v1/pki/issuer/{{issuer_id}}/crl/shard/{{shard}}/der',
  enable_templating: true,
}

const rotate = { settings: byItself, ask: (doomed: Client, { path }: WholeCa) => doomed.get(`${path}/crl/rotate`) }
const delta = { settings: byItself, ask: (doomed: Client, { path }: WholeCa) => doomed.get(`${path}/crl/rotate-delta`) }
const revoke = {
  ask: (doomed: Client, { path }: WholeCa, serial: string) => doomed.post(`${path}/revoke`, { serial_number: serial }),
  isRevocation: true,
} as const
const unify = {
  settings: { auto_rebuild: true },
  ask: (doomed: Client, { path }: WholeCa) =>
    doomed.post(`${path}/config/crl`, { unified_crl: true, unified_crl_on_existing_paths: true }),
}

const segments = { mark: 'INSERT INTO `pki_segments`' }
const numbers = { mark: 'UPDATE `pki_crl_numbers`' }
const lists = { mark: 'INSERT INTO `pki_crls`' }

/** The steps of each death, each in a mount of its own. */
const deaths: readonly (readonly BuildStep[])[] = [
  [
    { when: 'after', name: 'unified lists are switched on', mark: 'UPDATE `pki_authorities`', ...unify },
    { when: 'after', name: 'entries are in segments', ...segments, ...rotate },
  ],
  [{ when: 'after', name: 'the delta of the site is out', ...lists, ...delta }],
  [{ when: 'before', name: 'the list of all sites is out', ...lists, nth: 2, ...rotate }],
  [
    { when: 'after', name: 'the list of all sites has a number', ...numbers, nth: 2, ...rotate },
    { when: 'before', name: 'a revocation is in a segment', ...segments, settings: byRevocation, ...revoke },
  ],
  [{ when: 'after', name: 'the list of all sites is out', ...lists, nth: 2, ...rotate }],
  [{ when: 'before', name: 'the shards of a revocation are out', ...lists, settings: sharded, ...revoke }],
  [{ when: 'after', name: 'the shards of a revocation are out', ...lists, settings: sharded, ...revoke }],
]

interface Built {
  readonly ca: WholeCa
  readonly step: BuildStep
  /** Serial numbers whose revocation was acknowledged; the first `onLists` of them are on every list. */
  readonly revoked: string[]
  readonly onLists: number
  /** A serial number whose revocation was requested but not acknowledged. */
  readonly asked: string
  readonly good: string
  /** The highest CRL number seen at each path. */
  readonly numbers: Map<string, bigint>
}

/** With revocations on every list, and, where revocations build no lists, more that await a list. */
async function prepare(step: BuildStep): Promise<Built> {
  const { first } = world
  const ca = await createCa(first)
  await ca.post(first, 'config/urls', urls)
  await ca.post(first, 'config/crl', step.settings)
  const [asked = '', good = '', ...revoked] = await Promise.all(Array.from({ length: 7 }, () => ca.issue(first)))
  for (const serial of revoked.slice(0, 3)) await ca.revoke(first, serial)
  await ca.rotate(first)
  for (const serial of revoked.slice(3)) await ca.revoke(first, serial)
  const onLists = step.settings.auto_rebuild ? 3 : revoked.length
  const one = { ca, step, revoked, onLists, asked, good, numbers: new Map() }
  for (const scope of scopes(one)) await listed(one, first, `${scope}crl`)
  return one
}

const highest = ({ numbers }: Built): bigint => [...numbers.values()].reduce((a, b) => (a > b ? a : b), 0n)

const built = new Map<BuildStep, Built>()
beforeAll(async () => {
  for (const one of await Promise.all(deaths.flat().map(prepare))) built.set(one.step, one)
}, 90_000)

const scopes = ({ step }: Built): readonly string[] => (step.settings === byItself ? ['', 'unified-'] : [''])

/** The serial numbers on the list of a path, each once. Its CRL number is no lower than one seen there before. */
async function listed(one: Built, node: TestServer, path: string): Promise<readonly string[]> {
  const { number, serials } = await one.ca.list(node, `${path}/pem`)
  expect(new Set(serials).size).toBe(serials.length)
  expect(number).toBeGreaterThanOrEqual(one.numbers.get(path) ?? 0n)
  one.numbers.set(path, number)
  return serials.toSorted()
}

/** The law that holds at any moment, at both nodes. */
async function expectLaw(one: Built): Promise<void> {
  const { ca, revoked, onLists, good } = one
  for (const node of [world.first, world.second]) {
    for (const scope of scopes(one)) {
      expect(await ca.statuses(node, `${scope}ocsp`, revoked)).toEqual(revoked.map(() => 'revoked'))
      expect(await ca.statuses(node, `${scope}ocsp`, [good])).toEqual(['good'])
      const serials = await listed(one, node, `${scope}crl`)
      expect(serials).toEqual(expect.arrayContaining(revoked.slice(0, onLists).map(plain)))
    }
  }
}

/** The law once lists were built: they name every revoked certificate, and no other. */
async function expectBuilt(one: Built): Promise<void> {
  const { ca, step, revoked } = one
  const expected = revoked.map(plain).toSorted()
  for (const node of [world.first, world.second]) {
    for (const scope of scopes(one)) expect(await listed(one, node, `${scope}crl`)).toEqual(expected)
    if (step.settings === byItself) {
      for (const scope of scopes(one)) expect(await listed(one, node, `${scope}crl/delta`)).toEqual([])
    }
    if (step.settings !== sharded) continue
    const shards = ['1-of-2', '2-of-2'].map((name) => listed(one, node, `issuer/${ca.issuerId}/crl/shard/${name}`))
    expect((await Promise.all(shards)).flat().toSorted()).toEqual(expected)
  }
}

describe('killed while it builds', { shuffle: false }, () => {
  test.each(deaths.map((steps) => [titleOf(steps), steps] as const))(
    '%s: no acknowledged revocation is missing',
    async (_, steps) => {
      const all = steps.map((step) => built.get(step) as Built)
      const begin =
        ({ step, ca, asked }: Built) =>
        (doomed: Client) =>
          step.ask(doomed, ca, asked)
      await dieOf(
        world,
        all.map((one) => ({ ca: one.ca, step: one.step, begin: begin(one) })),
      )
      for (const one of all) {
        await expectLaw(one)
        // The revocation is recorded, although its client got no answer.
        const status = one.step.isRevocation ? 'revoked' : 'good'
        for (const node of [world.first, world.second])
          expect(await one.ca.statuses(node, 'ocsp', [one.asked])).toEqual([status])
      }
    },
    60_000,
  )

  test('the next lists name all that is revoked, under higher numbers', async () => {
    // Each list may have to wait until the lease of the dead node has expired.
    await Promise.all(
      [...built.values()].map(async (one) => {
        if (one.step.isRevocation) one.revoked.push(one.asked)
        const late = await one.ca.issue(world.first)
        await one.ca.revoke(world.first, late)
        one.revoked.push(late)
        await one.ca.rotate(world.first)
      }),
    )
    for (const one of built.values()) {
      const before = highest(one)
      one.numbers.clear()
      await expectBuilt(one)
      for (const [path, number] of one.numbers) expect(number, `${path} ${one.step.name}`).toBeGreaterThan(before)
    }
  }, 90_000)

  test('lists that were switched on serve the paths of the others', async () => {
    const one = [...built.values()].find(({ step }) => step.ask === unify.ask) as Built
    const serials = await listed(one, world.second, 'unified-crl')
    expect(serials).toEqual(one.revoked.map(plain).toSorted())
    expect(await listed(one, world.second, 'crl')).toEqual(serials)
  })

  test('nobody was taken for an intruder', async () => {
    for (const node of [world.first, world.second]) {
      const metrics = expectServed(await node.client().get('sys/metrics?format=prometheus')).text
      expect(metrics).not.toMatch(/^strongroom_pki_crl_alarms(?:\{[^}]*\})? [1-9]/m)
    }
  })
})
