import { expect, test } from 'vitest'
import { hashOf } from '../../../src/crypto/hashes.ts'
import { type Cluster, makeKey, useCluster } from '../support.ts'

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
