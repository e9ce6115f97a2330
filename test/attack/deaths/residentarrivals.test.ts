import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../../src/clock.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { envelopeOf, wrappingKeyOf } from '../../api/transit/envelope.ts'
import vault from '../../api/transit/fixtures/vaultblobs.json' with { type: 'json' }
import { clock, openHsm, Place, reopen } from '../../keys/support.ts'
import type { Client } from '../../support/client.ts'
import { expectServed } from '../nodes.ts'
import { verifyWhole } from '../writers.ts'
import { useDoomed } from './doomed.ts'

/**
 * Keys that stay in the token (Ed25519 in strict mode): kill -9 at the COMMIT that announces an object, and at the one
 * that stores its key, when the object exists already. The next sweep removes leftovers.
 */
const doomed = useDoomed({ config: { strict: true } })
let hsm: Hsm
let pem = ''
beforeAll(async () => {
  hsm = await openHsm(doomed.first.token)
  pem = await wrappingKeyOf(doomed.root)
  expectServed(await doomed.root.post('transit/keys/bystander', { type: 'ed25519' }))
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

const later: Clock = { ...clock, wall: () => clock.wall() + 2 * 3_600_000 }
const objects = async () => (await hsm.find({ class: 'private', token: true })).length
const rows = async (state: string) => (await doomed.sql.rows('SELECT id FROM intents WHERE state = ?', [state])).length
const residents = async () => (await doomed.sql.rows("SELECT id FROM materials WHERE residence = 'token'")).length

/** Runs the job as of an hour later. */
async function sweep(): Promise<void> {
  await using place = await Place.at(doomed.first.database.url)
  using custody = await reopen(hsm, place, { strict: true, clock: later })
  await custody.objects.residents.sweep()
}

const pkcs8 = () => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' })
const ways: Record<string, (node: Client, name: string) => Promise<unknown>> = {
  create: (node, name) => node.post(`transit/keys/${name}`, { type: 'ed25519' }),
  import: (node, name) =>
    node.post(`transit/keys/${name}/import`, { type: 'ed25519', ciphertext: envelopeOf(pem, pkcs8()) }),
  restore: (node, name) => node.post('transit/restore', { name, backup: closed(vault.ed25519) }),
}

/** The same key, never to leave again, with one version: strict mode keeps such keys in the token. */
function closed(blob: string): string {
  const text = Buffer.from(blob, 'base64')
    .toString()
    .replace(/"(exportable|allow_plaintext_backup)":true/g, '"$1":false')
    .replace(/"min_(decryption|available)_version":\d+/g, (found) =>
      found.includes('available') ? '"min_available_version":0' : found,
    )
  return Buffer.from(text).toString('base64')
}

let names = 0
/** A COMMIT for each object that is announced, and one for the key. */
const commits: Record<string, number> = { create: 2, import: 2, restore: 3 }

const deaths = Object.entries(commits).flatMap(([way, last]) =>
  Array.from({ length: last }, (_, index) => index + 1).flatMap((nth) =>
    (['before', 'after'] as const).map((when) => ({ way, when, nth, stored: when === 'after' && nth === last })),
  ),
)

test.each(deaths)(
  '$way, killed $when COMMIT $nth: the key is there whole, or nothing of it once it was swept',
  async ({ way, when, nth, stored }) => {
    const name = `resident-${names++}`
    const before = await objects()
    await doomed.die(when, async (node) => ways[way]?.(node, name), nth)
    const read = await doomed.root.get(`transit/keys/${name}`)
    expect(read.status).toBe(stored ? 200 : 404)
    await sweep()
    expect(await rows('intent')).toBe(0)
    expect(await rows('removed')).toBe(0)
    expect(await objects()).toBe(before + (stored ? (commits[way] ?? 0) - 1 : 0))
    expect(await objects()).toBe(await residents())
    await verifyWhole(doomed.root, doomed.sql)
    if (stored) expectServed(await doomed.root.post(`transit/sign/${name}`, { input: 'eA==' }))
  },
  60_000,
)

test('a key that is refused once its object was made leaves neither object nor row, and counts against no limit', async () => {
  const name = `resident-${names++}`
  const public_key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
  expectServed(await doomed.root.post(`transit/keys/${name}/import`, { type: 'ed25519', public_key }))
  const before = await objects()
  const other = { ciphertext: envelopeOf(pem, pkcs8()), version: 1 }
  const refused = await doomed.root.post(`transit/keys/${name}/import_version`, other)
  expect(refused.status).toBe(400)
  expect(await rows('intent')).toBe(0)
  expect(await rows('removed')).toBe(0)
  expect(await objects()).toBe(before)
  await verifyWhole(doomed.root, doomed.sql)
})
