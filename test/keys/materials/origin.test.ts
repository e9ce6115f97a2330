import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { describe as describeRow } from '../../../src/keys/material.ts'
import { type Cluster, makeKey, useCluster } from '../support.ts'

/** What a key's row says about where the key came from. */

let cluster: Cluster
useCluster('origin', (begun) => {
  cluster = begun
})

test('a public key from outside is shown as imported and as no key of the token', async () => {
  const { publicKey: given } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const material = await makeKey(cluster.custody, cluster.place.database, 'ecdsa-p256', { given })
  expect(material.publicKey.equals(given)).toBe(true)
  expect(describeRow(material.row)).toMatchObject({
    ...{ origin: 'imported', residence: 'public', created_by: 'me' },
    ...{ local: false, always_sensitive: false, never_extractable: false, ever_plaintext: true },
  })
})

test('a key that the token makes is shown as generated', async () => {
  const material = await makeKey(cluster.custody, cluster.place.database, 'ecdsa-p256')
  expect(describeRow(material.row)).toMatchObject({ origin: 'generated', residence: 'wrapped', local: true })
})

test('the PIN of another token is kept as an imported secret that was in memory, and never leaves', async () => {
  const { fields } = await cluster.custody.managed.pins.seal('1234', 'me')
  expect(fields).toMatchObject({
    ...{ origin: 'imported', residence: 'enveloped', exportable: false, createdBy: 'me' },
    ...{ local: false, alwaysSensitive: false, neverExtractable: false, everPlaintext: true },
  })
})
