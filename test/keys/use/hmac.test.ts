import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashOf } from '../../../src/crypto/hashes.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { wrapSecret } from '../../../src/keys/making/secret.ts'
import { describe } from '../../../src/keys/material.ts'
import { type Cluster, makeKey, nobody, useCluster } from '../support.ts'

/** Which HMACs the token makes with a secret as it lies there. */

let cluster: Cluster
useCluster('hmacs', (begun) => {
  cluster = begun
})

const secretOf = (sizeBytes: number) => makeKey(cluster.custody, cluster.place.database, 'hmac', { sizeBytes })

// Other modules take other lengths.
const softhsm = process.env.STRONGROOM_TEST_HSM === undefined

test.runIf(softhsm).each([
  ['sha2-256', 32],
  ['sha2-384', 48],
  ['sha2-512', 64],
])('%s is made in the token with a secret of %i bytes, which is not opened for it', async (name, sizeBytes) => {
  const { hmacs } = cluster.custody.operations
  const hash = hashOf(name)
  const secret = await secretOf(sizeBytes)
  expect(hmacs.native(secret, hash)).toBe(true)
  expect(hmacs.obstacle(secret, hash)).toBeUndefined()
  expect(await hmacs.mac(secret, hash, Buffer.from('input'))).toHaveLength(hash.bytes)
})

test.runIf(softhsm).each([
  ['sha2-384', 40],
  ['sha2-512', 56],
])('%s is not made in the token with a secret of %i bytes, which is opened once', async (name, sizeBytes) => {
  const { hmacs } = cluster.custody.operations
  const secret = await secretOf(sizeBytes)
  expect(hmacs.native(secret, hashOf(name))).toBe(false)
  expect(hmacs.obstacle(secret, hashOf(name))).toMatchObject({ opened: 'once' })
})

test('a secret that an earlier program made in memory serves every hash as it did, and shows what it is', async () => {
  const { custody, place, hsm } = cluster
  const secret = randomBytes(32)
  const kek = await new Keks(hsm, place.database, false).active('open')
  const { fields } = await custody.materials.prepare({
    ...{ algorithm: 'hmac', part: 'hmac', sizeBytes: 32, exportable: false, createdBy: 'me' },
  })
  const inMemory = { local: false, neverExtractable: false, alwaysSensitive: false, everPlaintext: true }
  const blob = await wrapSecret(hsm, kek, secret)
  const old = { ...fields, ...inMemory, blob, kek: kek.row.id, residence: 'enveloped' } as const
  const { id } = await place.database.transaction((tx) =>
    custody.materials.insert(tx, { fields: old, intent: undefined }, { mount: '', key: randomUUID(), version: 1 }),
  )
  const { hmacs } = custody.operations
  const shown = { residence: 'enveloped', origin: 'generated', local: false, ever_plaintext: true }
  // Padding the secret for a longer hash leaves the MACs of the shorter ones as they were.
  for (const name of ['sha2-256', 'sha3-256', 'sha2-512', 'sha2-256']) {
    const [material, hash] = [await custody.materials.fetch(id), hashOf(name)]
    expect(describe(material.row)).toMatchObject(shown)
    const input = Buffer.from('input')
    const mac = await (hmacs.native(material, hash)
      ? hmacs.mac(material, hash, input)
      : hmacs.macOpened(material, hash, input, nobody))
    expect([name, mac]).toEqual([name, createHmac(hash.node, secret).update(input).digest()])
  }
})
