import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTransit } from '../../src/engines/transit/index.ts'
import { newKey } from '../../src/engines/transit/ring/newkey.ts'
import type { MakeExportable } from '../../src/keys/transfer/makeexportable.ts'
import type { Mount } from '../../src/route.ts'
import { type Cluster, clock, manage, useCluster } from '../keys/support.ts'

/** A key is made exportable while a version of it, a public key, gets its private half. */

const mount: Mount = { uuid: randomUUID(), path: 'transit/', type: 'transit', config: {} }
const name = 'k'
const algorithm = 'ecdsa-p256'
const wanted = { algorithm, part: 'key', exportable: false, createdBy: 'me' } as const

let cluster: Cluster
useCluster('exporting', (begun) => {
  cluster = begun
})

/** A transit engine that does something between the rewrapping of a key's parts and their transaction. */
function transitWith(between: () => Promise<unknown>) {
  const { hsm, custody, place } = cluster
  const { operations, materials, transfer } = custody
  const { database } = place
  const { makeExportable: real } = transfer
  const makeExportable: Pick<MakeExportable, 'prepare' | 'apply'> = {
    async prepare(rows) {
      const releases = await real.prepare(rows)
      if (rows.length > 0) await between()
      return releases
    },
    apply: (tx, releases) => real.apply(tx, releases),
  }
  const { managed } = manage(custody, database, hsm)
  const halting = { ...transfer, makeExportable: makeExportable as MakeExportable }
  return createTransit({ database, operations, materials, transfer: halting, clock, managed, ringLimit: 100 })
}

test('the private half may leave, too', async () => {
  const { custody, place } = cluster
  const { database } = place
  const { keyImport } = custody.transfer
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let completed = false
  const { context, onMount } = transitWith(async () => {
    if (completed) return
    completed = true
    const bytes = pair.privateKey.export({ format: 'der', type: 'pkcs8' })
    const draft = await keyImport.restore(wanted, { kind: 'pair', bytes })
    await context.changes.change(mount, name, 'none', (tx, ring) => context.versions.complete(tx, ring, 1, draft))
  })
  await database.transaction(async (tx) => onMount?.(mount, tx))
  const row = { ...newKey(mount, { name, type: algorithm }, clock.wall()), mount: mount.uuid, imported: true }
  const half = async () => keyImport.preparePublic(wanted, pair.publicKey)
  const draft = await context.versions.prepare(row, 'me', { key: half })
  await context.keys.add(row, [{ version: 1, draft }], () => {})

  const { ring, parts } = await context.changes.configure(mount, name, 'none', () => ({ exportable: true }))
  expect(completed).toBe(true)
  expect(ring.key.exportable).toBe(true)
  const kinds = [...parts.values()].map(({ part, residence, exportable }) => `${part} ${residence} ${exportable}`)
  expect(kinds.sort()).toEqual(['hmac wrapped true', 'key wrapped true'])
})
