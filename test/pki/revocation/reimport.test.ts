import { describe, expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import { type Answer, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { csrOf } from '../api/csr.ts'
import { intermediate } from '../proof/chain.ts'

/** The certificate of an issuer that was revoked and deleted, imported again. */

const node = useNode({ workers: 2 })

/** Imports certificates. @returns what the mount shows of each, and the warnings about revocations */
async function imported(pki: TestAuthority, ...certificates: readonly unknown[]) {
  const reply = await done(pki.post('issuers/import/cert', { pem_bundle: certificates.join('\n') }))
  const ids = dataOf(reply).imported_issuers as readonly string[]
  const issuers = await Promise.all(ids.map(async (id) => dataOf(await done(pki.get(`issuer/${id}`)))))
  return { ids, issuers, warnings: warningsOf(reply).filter((text) => text.includes('revoked')) }
}

const revoked = { revoked: true, usage: 'crl-signing,ocsp-signing,read-only' }
const notRevoked = { revoked: false, usage: 'crl-signing,issuing-certificates,ocsp-signing,read-only' }

async function refusesToIssue(pki: TestAuthority, id: unknown): Promise<void> {
  const reply = await pki.post(`issuer/${id}/sign-intermediate`, { csr: await csrOf('/CN=Below'), ttl: '1h' })
  expect([reply.status, errorsOf(reply)[0]]).toEqual([400, expect.stringContaining('it was revoked')])
}

describe('an issuer that was revoked and deleted', () => {
  test('stays revoked since the same moment, with a warning', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'root' })
    const sub = await intermediate(pki, 'root', { common_name: 'Sub', key_type: 'ec' })
    const before = dataOf(await done(pki.post(`issuer/${sub.id}/revoke`)))
    await done(pki.delete(`issuer/${sub.id}`))
    await done(pki.post('config/issuers', { default: 'root', default_follows_latest_issuer: true }))
    const { default: root } = dataOf(await pki.get('config/issuers'))
    const { ids, issuers, warnings } = await imported(pki, sub.certificate)
    expect(ids).not.toEqual([sub.id])
    expect(issuers).toMatchObject([{ ...revoked, key_id: before.key_id, revocation_time: before.revocation_time }])
    expect(warnings).toEqual([
      expect.stringMatching(`^Issuer ${ids[0]} was revoked in this mount at .*Z, and stays revoked: it issues no`),
    ])
    await refusesToIssue(pki, ids[0])
    expect(dataOf(await pki.get('config/issuers')).default).toBe(root)
    const usage = await pki.patch(`issuer/${ids[0]}`, { usage: 'issuing-certificates' })
    expect(errorsOf(usage)[0]).toContain('This issuer was revoked')
    // Revoked again it answers the same.
    expect(dataOf(await done(pki.post(`issuer/${ids[0]}/revoke`)))).toEqual(issuers[0])
  })

  test('stays revoked as a root, and becomes no default; another certificate of its key is a new issuer', async () => {
    const pki = await createAuthority(node)
    const { certificate, key_id: key } = await pki.root({ issuer_name: 'root' })
    await done(pki.post('issuer/root/revoke'))
    await done(pki.delete('issuer/root'))
    const { ids, issuers } = await imported(pki, certificate)
    expect(issuers).toMatchObject([{ ...revoked, key_id: key }])
    await refusesToIssue(pki, ids[0])
    expect(dataOf(await pki.get('config/issuers')).default).toBe('')
    const again = { common_name: 'Test Root', key_ref: key, ttl: '1000h' }
    const { issuer_id: fresh } = dataOf(await done(pki.post('root/generate/existing', again)))
    expect(dataOf(await pki.get(`issuer/${fresh}`))).toMatchObject(notRevoked)
    expect(dataOf(await pki.get('config/issuers')).default).toBe(fresh)
  })

  test.each(['alone', 'with its parent'])('stays revoked where its parent has no key, imported %s', async (how) => {
    const [above, pki] = [await createAuthority(node), await createAuthority(node)]
    const { certificate: root } = await above.root()
    const made = { common_name: 'S', key_type: 'ec' }
    const { csr } = dataOf(await done(pki.post('intermediate/generate/internal', made)))
    const { certificate: sub } = dataOf(await done(above.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const first = await imported(pki, sub, root)
    for (const id of first.ids.slice(0, 1)) await done(pki.post(`issuer/${id}/revoke`))
    for (const id of first.ids) await done(pki.delete(`issuer/${id}`))
    const { ids, issuers } = await imported(pki, ...(how === 'alone' ? [sub] : [sub, root]))
    expect(issuers).toMatchObject([revoked, notRevoked].slice(0, ids.length))
    await refusesToIssue(pki, ids[0])
  })
})

test('a CA certificate that was revoked like a leaf is a revoked issuer', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  const { csr } = dataOf(await done(pki.post('intermediate/generate/internal', { common_name: 'S', key_type: 'ec' })))
  const sub = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '8760h' })))
  await done(pki.post('revoke', { serial_number: sub.serial_number }))
  const { ids, issuers, warnings } = await imported(pki, sub.certificate)
  expect(issuers).toMatchObject([revoked])
  expect(warnings).toHaveLength(1)
  await refusesToIssue(pki, ids[0])
})

test('the revocation of a cross-certificate concerns neither the root nor those by others', async () => {
  const [above, pki] = [await createAuthority(node), await createAuthority(node)]
  const old = await above.root({ common_name: 'Old' })
  const crossed: Answer[] = []
  for (const name of ['N1', 'N2']) {
    const { issuer_id: parent } = await pki.root({ common_name: name })
    const given = { certificate: old.certificate }
    crossed.push(dataOf(await done(pki.post(`issuer/${parent}/sign-self-issued`, given))))
  }
  const [x1, x2] = crossed.map(({ certificate }) => certificate)
  const first = await imported(pki, x1, x2, old.certificate)
  expect(first.issuers).toMatchObject([notRevoked, notRevoked, notRevoked])
  await done(pki.post(`issuer/${first.ids[0]}/revoke`))
  for (const id of first.ids) await done(pki.delete(`issuer/${id}`))
  const { issuers, warnings } = await imported(pki, x1, x2, old.certificate)
  expect(issuers).toMatchObject([revoked, notRevoked, notRevoked])
  expect(warnings).toHaveLength(1)
})
