import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { objectId } from '../../src/keys/kek/identity.ts'
import type { Material } from '../../src/keys/material.ts'
import type { Draft } from '../../src/keys/materials/draft.ts'
import { type Cluster, useCluster } from './support.ts'

/** A cluster of its own: this test fills its token up. The token of another node holds as many keys. */
let cluster: Cluster
const residentLimit = 2
useCluster(
  'residentlimit',
  async (begun) => {
    cluster = begun
    for (let count = 0; count < residentLimit; count++) await storeElsewhere()
  },
  { residentLimit },
)
const createdBy = 'me'

/** A row as another node's worker writes it, for a key that only its token holds. */
async function storeElsewhere(): Promise<void> {
  const { custody, hsm } = cluster
  const draft = await custody.authorityKeys.prepare({ algorithm: 'ecdsa-p256', createdBy })
  const ckaId = objectId(custody.cluster.id, draft.fields.id ?? '')
  const there = {
    residence: 'token',
    kek: null,
    mechanism: null,
    blob: null,
    ckaId,
    tokenSerial: `not ${hsm.token.serial}`,
  }
  await store({ ...draft, fields: { ...draft.fields, ...there } })
}

async function store(draft: Draft): Promise<Material> {
  const { materials } = cluster.custody
  const owner = { mount: '', key: randomUUID(), version: 1 }
  const row = await cluster.place.database.transaction((tx) => materials.insert(tx, draft, owner))
  return materials.fetch(row.id)
}

/** Signs after the live object was dropped, so that it is found again. */
async function expectSigns(material: Material): Promise<void> {
  cluster.custody.objects.handles.drop(material.id)
  const signer = cluster.custody.operations.certification.of(material)
  const [name = 'ECDSAWithSHA256'] = signer.algorithms
  expect((await signer.sign(name, Buffer.from('to be signed'))).signature.length).toBeGreaterThan(0)
}

test('keys of authorities that live in this token alone are not extractable, and the most that are allowed', async () => {
  const wanted = { algorithm: 'ecdsa-p256', residence: 'token', createdBy } as const
  const stored: Material[] = []
  let refused: unknown
  for (let count = 0; refused === undefined && count <= residentLimit; count++) {
    const draft = await cluster.custody.authorityKeys.prepare(wanted).catch((error) => {
      refused = error
    })
    if (draft) stored.push(await store(draft))
  }
  expect(stored).toHaveLength(residentLimit)
  expect(refused).toMatchObject({
    status: 400,
    message: `the HSM already holds ${residentLimit} keys that live there alone, the most that are allowed`,
  })
  for (const material of stored) {
    expect(material.row).toMatchObject({ residence: 'token', kek: null, blob: null, neverExtractable: true })
    await expectSigns(material)
  }
  await expect(cluster.custody.authorityKeys.prepare({ ...wanted, residence: 'wrapped' })).resolves.toMatchObject({
    fields: { residence: 'wrapped' },
  })
})
