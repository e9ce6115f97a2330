import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { Cipher } from '../../../src/keys/use/cipher.ts'
import { Usage } from '../../../src/keys/use/usage.ts'
import { Metrics } from '../../../src/metrics.ts'
import { type Cluster, useCluster } from '../support.ts'

/** How often a key version may encrypt (SP 800-38D section 8.3). */

let cluster: Cluster
useCluster('counting', (begun) => {
  cluster = begun
})

/** Counts encryptions under a key version that was used so often before. */
async function counting(used: number, strict: boolean) {
  const { hsm, place, custody } = cluster
  const { blobs } = custody.managed
  const { handles } = custody.objects
  const counter = randomUUID()
  await place.sql('INSERT INTO usage_counters (material, used) VALUES (?, ?)', [counter, used])
  const overused = new Metrics().counter('overused', 'Encryptions that were warned of.')
  const cipher = new Cipher({ hsm, blobs, handles, strict, usage: new Usage(place.database, 10), overused })
  return { count: async () => cipher.count(counter), overused }
}
const warning = 'this key version has encrypted more than 2^31 times: rotate the key'

test('the 2^31st encryption is not warned of, every later one is, and counted', async () => {
  const { count, overused } = await counting(2 ** 31 - 2, true)
  expect([await count(), await count()]).toEqual([undefined, undefined])
  expect(overused.value).toBe(0)
  expect([await count(), await count()]).toEqual([warning, warning])
  expect(overused.value).toBe(2)
})

test('strict mode makes the 2^32nd encryption, and none after it', async () => {
  const { count } = await counting(2 ** 32 - 2, true)
  expect([await count(), await count()]).toEqual([warning, warning])
  const refusal = { status: 400, message: expect.stringContaining('has encrypted 2^32 times') }
  await expect(count()).rejects.toMatchObject(refusal)
  await expect(count()).rejects.toMatchObject(refusal)
})

test('without strict mode encryptions beyond 2^32 are warned of', async () => {
  const { count } = await counting(2 ** 32, false)
  expect(await count()).toBe(warning)
})

test('a key version that was used a few hundred times is not warned of', async () => {
  const { count, overused } = await counting(300, true)
  expect(await count()).toBeUndefined()
  expect(overused.value).toBe(0)
})
