import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { SystemMac, type SystemPurpose } from '../../../src/keys/cluster/system.ts'
import { Custody } from '../../../src/keys/custody.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { systemKeysTable } from '../../../src/keys/tables.ts'
import { type Cluster, options, useCluster } from '../support.ts'

/** The three keys of the server itself. */

let cluster: Cluster
useCluster('system', (begun) => {
  cluster = begun
})

/** The key of a purpose, opened out of its row. */
async function keyOf(purpose: SystemPurpose): Promise<SystemMac> {
  const { hsm, place } = cluster
  const page = { by: 'id', limit: 2 } as const
  const rows = await place.database.read((q) => place.database.table(systemKeysTable).list(q, { purpose }, page))
  const [row] = rows
  if (row === undefined || rows.length > 1) throw new Error(`${rows.length} ${purpose} keys`)
  const kek = await new Keks(hsm, place.database, false).get(row.kek)
  return new SystemMac(hsm, row, async () => ({ kek, blob: row.blob }))
}
const hmac = (key: Uint8Array, text: string): string => createHmac('sha256', key).update(text).digest('hex')

test('rows, credentials and the audit log each have the key of their own row', async () => {
  const [rows, tokens, audit] = [await keyOf('rows'), await keyOf('tokens'), await keyOf('audit')]
  const { rowMac, tokenMac, audit: derived } = cluster.custody.macs
  const message = Buffer.from('message')
  expect(rowMac.keyId).toBe(rows.row.id)
  expect(await rowMac.compute(message)).toEqual(await rows.mac(message))
  expect(await tokenMac(message)).toEqual(await tokens.mac(Buffer.from('strongroom/token-id/1\0message')))
  expect(derived.guess).toEqual(await audit.mac(Buffer.from('strongroom/guess-filter/1')))
  const devices = await audit.mac(Buffer.from('strongroom/audit-devices/1'))
  expect(derived.device('uuid').toString('hex')).toBe(hmac(devices, 'uuid'))
  const accessors = await audit.mac(Buffer.from('strongroom/accessors/1'))
  expect(derived.hashAccessor('accessor')).toBe(`hmac-sha256:${hmac(accessors, 'accessor')}`)
  for (const key of [rows, tokens, audit]) key.close()
})

test('the keys for rows and credentials are in the token while the cluster is open, the audit key is not', async () => {
  const { hsm, place } = cluster
  const secrets = async () => (await hsm.find({ class: 'secret', token: false })).length
  const before = await secrets()
  const custody = await Custody.open(options(hsm, place.database))
  await custody.macs.tokenMac(Buffer.from('message'))
  await expect.poll(secrets).toBe(before + 2)
  custody.close()
  await expect.poll(secrets).toBe(before)
})

test('key pairs that were made ahead go from the token when the cluster is closed', async () => {
  const { hsm, place } = cluster
  const pairs = async () => (await hsm.find({ class: 'private', token: false })).length
  expect(await pairs()).toBe(0)
  const custody = await Custody.open(options(hsm, place.database))
  await custody.transients.make('rsa-2048')
  await expect.poll(pairs, { timeout: 60_000 }).toBeGreaterThan(0)
  custody.close()
  await expect.poll(pairs, { timeout: 20_000 }).toBe(0)
}, 120_000)
