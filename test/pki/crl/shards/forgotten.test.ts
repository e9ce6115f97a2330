import { afterEach, describe, expect, test } from 'vitest'
import { pemOf } from '../../../../src/engines/pki/authority/pem.ts'
import type { Data } from '../../../../src/route.ts'
import { clock, TestMount, useOcspWorld } from '../../ocsp/world.ts'
import { createCa } from '../../revocation/ca.ts'

/** Deleted issuers are remembered for the shards of their certificates until those certificates have ended. */

const world = useOcspWorld()
const hour = 3_600_000
afterEach(() => {
  clock.ahead = 0
})

/** A mount whose certificates name two shards, with a root of 1000 hours. */
async function spread(): Promise<TestMount> {
  const pki = await TestMount.make(world.worker, { ttl: 3_600_000 })
  const crl_distribution_points = ['http://crl.example/{{issuer_id}}/{{shard}}']
  await pki.run('POST', 'config/urls', {}, { crl_distribution_points, enable_templating: true })
  await pki.run('POST', 'config/crl', {}, { crl_shards: 2 })
  return pki
}

/** Another issuer of the name and key of the root, of 100 hours. @returns its id */
async function twinOf(pki: TestMount): Promise<string> {
  const body = { common_name: 'OCSP Root', key_ref: 'default', ttl: 360_000 }
  return String((await pki.run('POST', 'root/generate/:type', { type: 'existing' }, body)).issuer_id)
}

const deleteIssuer = (pki: TestMount, issuer_ref: string) => pki.run('DELETE', 'issuer/:issuer_ref', { issuer_ref })
const set = (pki: TestMount, issuer_ref: string, body: Data) =>
  pki.run('POST', 'issuer/:issuer_ref', { issuer_ref }, body)
const remembered = async ({ mount }: TestMount) => {
  const { settings } = await world.worker.context.authorities.of(mount)
  return (settings.crl?.deletedIssuers ?? []).map(({ id }) => id).toSorted()
}

describe('a deleted issuer', () => {
  test('is forgotten with the next change after its own end, and a further one of its name and key is taken again', async () => {
    const pki = await spread()
    const twins: string[] = []
    for (let index = 0; index < 16; index++) {
      const twin = await twinOf(pki)
      twins.push(twin)
      await deleteIssuer(pki, twin)
    }
    clock.ahead = 99 * hour
    await expect(twinOf(pki)).rejects.toMatchObject({ status: 400 })
    expect(await remembered(pki)).toEqual(twins.toSorted())
    clock.ahead = 101 * hour
    await twinOf(pki)
    expect(await remembered(pki)).toEqual([])
  })

  test('is remembered for longer where its certificates may end later', async () => {
    const pki = await spread()
    const [plain, permitting, signing] = [await twinOf(pki), await twinOf(pki), await twinOf(pki)]
    await set(pki, permitting, { leaf_not_after_behavior: 'permit' })
    await set(pki, permitting, { leaf_not_after_behavior: 'err' })
    const { certificate } = createCa('Old Root')
    const path = 'issuer/:issuer_ref/sign-self-issued'
    await pki.run('POST', path, { issuer_ref: signing }, { certificate: pemOf(certificate) })
    for (const twin of [plain, permitting, signing]) await deleteIssuer(pki, twin)
    expect(await remembered(pki)).toHaveLength(3)
    clock.ahead = 101 * hour
    await twinOf(pki)
    expect(await remembered(pki)).toEqual([permitting, signing].toSorted())
  })
})
