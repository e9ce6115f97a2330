import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, useNode } from '../../api/node.ts'
import { openSql } from '../../attack/sql.ts'
import { type Answer, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { intermediate } from '../proof/chain.ts'

const node = useNode({ workers: 2 })

/** A root with an intermediate below it, and a role that the intermediate serves. */
async function hierarchy() {
  const pki = await createAuthority(node)
  const root = await pki.root({ issuer_name: 'root' })
  const sub = await intermediate(pki, 'root', { common_name: 'Sub', key_type: 'ec' })
  await pki.role('r', { issuer_ref: sub.id })
  return { pki, root, sub }
}

/**
 * An old root, and new ones with keys that have certified it by sign-self-issued: those certificates have its serial
 * number, and are issuers of the mount of the new roots.
 * @param withRoot whether the old root is an issuer there too
 */
async function crossCertified(parents: readonly string[], withRoot = false) {
  const [above, pki] = [await createAuthority(node), await createAuthority(node)]
  const old = await above.root({ common_name: 'Old' })
  const certificates: string[] = []
  const crossed: { readonly id: string; readonly parent: unknown }[] = []
  const add = async (certificate: unknown): Promise<string> => {
    const set = dataOf(await done(pki.post('issuers/import/cert', { pem_bundle: certificate })))
    return (set.imported_issuers as string[])[0] ?? ''
  }
  for (const name of parents) {
    const { issuer_id: parent } = await pki.root({ common_name: name })
    const { certificate } = dataOf(
      await done(pki.post(`issuer/${parent}/sign-self-issued`, { certificate: old.certificate })),
    )
    certificates.push(String(certificate))
    crossed.push({ id: await add(certificate), parent })
  }
  return { pki, old, certificates, crossed, rootId: withRoot ? await add(old.certificate) : '' }
}

/** The revocations recorded for a mount: serial number, uuid of the issuer, and whether a list is to name it. */
async function recorded(pki: TestAuthority): Promise<readonly (readonly unknown[])[]> {
  await using sql = await openSql(node.server.database.url)
  const rows = await sql.rows(
    `SELECT LOWER(HEX(r.serial)) AS serial, r.issuer, r.crl_issuer IS NOT NULL AS listed FROM pki_revocations r
      JOIN mounts m ON m.id = r.mount WHERE m.path = ?`,
    [`${pki.path}/`],
  )
  return rows.map(({ serial, issuer, listed }) => [serial, issuer, listed])
}
const hex = (serial: unknown) => String(serial).replaceAll(':', '')
const serialIn = async (pki: TestAuthority, id: string): Promise<string> => {
  const info = dataOf(await pki.list('issuers')).key_info as Record<string, Answer>
  return String(info[id]?.serial_number)
}

describe('revoking an issuer', () => {
  test('is for good: it issues no more, and the list of its parent names it', async () => {
    const { pki, root, sub } = await hierarchy()
    const serial = await serialIn(pki, sub.id)
    const before = dataOf(await pki.get(`issuer/${sub.id}`))
    expect(before.revoked).toBe(false)
    const answer = await pki.post(`issuer/${sub.id}/revoke`)
    expectData(answer, {
      ...before,
      usage: 'crl-signing,ocsp-signing,read-only',
      revoked: true,
      revocation_time: expect.any(Number),
      revocation_time_rfc3339: expect.stringMatching(/Z$/),
    })
    expect(await recorded(pki)).toEqual([[hex(serial), root.issuer_id, 1]])
    expectData(await pki.get(`issuer/${sub.id}`), dataOf(answer))
    expectData(await pki.post(`issuer/${sub.id}/revoke`), dataOf(answer))
    expect(await recorded(pki)).toHaveLength(1)
    const refused = await pki.post('issue/r', { common_name: 'a.example' })
    expect({ status: refused.status, text: errorsOf(refused)[0] }).toEqual({
      status: 400,
      text: expect.stringContaining('it was revoked'),
    })
    for (const method of ['patch', 'post'] as const) {
      const reset = await done(pki[method](`issuer/${sub.id}`, { usage: null }))
      expect(dataOf(reset).usage).toBe('crl-signing,ocsp-signing,read-only')
    }
    const usage = await pki.patch(`issuer/${sub.id}`, { usage: 'issuing-certificates' })
    expect(errorsOf(usage)[0]).toContain('This issuer was revoked; unable to modify its usage')
  })

  test('shows its stored certificate as revoked, at the same time', async () => {
    const { pki, sub } = await hierarchy()
    const serial = await serialIn(pki, sub.id)
    const { revocation_time: seconds } = dataOf(await done(pki.post(`issuer/${sub.id}/revoke`)))
    expect(dataOf(await pki.get(`cert/${serial}`))).toMatchObject({
      certificate: sub.certificate,
      revocation_time: seconds,
    })
    expect(dataOf(await pki.list('certs/revoked')).keys).toEqual([serial])
  })

  test('leaves its certificates to be revoked one by one', async () => {
    const { pki, sub } = await hierarchy()
    const leaf = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    await done(pki.post(`issuer/${sub.id}/revoke`))
    expect((await pki.post('revoke', { serial_number: leaf.serial_number })).status).toBe(200)
    expect(await recorded(pki)).toContainEqual([hex(leaf.serial_number), sub.id, 1])
  })

  test('that signed itself puts it on no list, with a warning', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root({ issuer_name: 'root' })
    const answer = await pki.post('issuer/root/revoke')
    expect(answer.status).toBe(200)
    expect(warningsOf(answer)).toEqual([
      expect.stringContaining('is self-signed: no list can show its revocation'),
      expect.stringContaining('is the default issuer'),
    ])
    // Its stored certificate is shown as revoked all the same.
    expect(await recorded(pki)).toEqual([[hex(root.serial_number), '', 0]])
    const { revocation_time, revocation_time_rfc3339 } = dataOf(answer)
    // No issuer_id: no issuer is known to have revoked it.
    expect(dataOf(await pki.get(`cert/${root.serial_number}`))).toEqual({
      ...{ certificate: root.certificate, revocation_time, revocation_time_rfc3339 },
    })
  })

  test('whose parent is elsewhere warns of it', async () => {
    const [above, pki] = [await createAuthority(node), await createAuthority(node)]
    await above.root()
    const { csr } = dataOf(await done(pki.post('intermediate/generate/internal', { common_name: 'S', key_type: 'ec' })))
    const { certificate } = dataOf(await done(above.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const { imported_issuers: ids } = dataOf(await done(pki.post('intermediate/set-signed', { certificate })))
    const [id = ''] = ids as string[]
    expect(warningsOf(await pki.post(`issuer/${id}/revoke`))).toContainEqual(
      expect.stringContaining('No issuer of this mount has signed issuer'),
    )
    expect(await recorded(pki)).toEqual([])
  })

  test('whose parent is here without its key warns of it, and is revoked where the key is', async () => {
    const [above, pki] = [await createAuthority(node), await createAuthority(node)]
    const { certificate: root } = await above.root()
    const { csr } = dataOf(await done(pki.post('intermediate/generate/internal', { common_name: 'S', key_type: 'ec' })))
    const { certificate } = dataOf(await done(above.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const chain = { certificate: `${certificate}\n${root}` }
    const { mapping } = dataOf(await done(pki.post('intermediate/set-signed', chain))) as { mapping: Answer }
    const [id = ''] = Object.keys(mapping).filter((one) => mapping[one] !== '')
    const parent = Object.keys(mapping).find((one) => mapping[one] === '')
    for (let n = 0; n < 2; n++) {
      expect(warningsOf(await done(pki.post(`issuer/${id}/revoke`)))).toEqual([
        `The key of issuer ${parent}, which has signed issuer ${id}, is not in this mount: no list here names issuer ${id}; revoke it where that key is, too.`,
        expect.stringContaining('is the default issuer'),
      ])
    }
    expect(warningsOf(await done(above.post('revoke', { certificate })))).toEqual([])
  })

  test('beside a revoked one with the same serial and another parent is refused, and stays as it is', async () => {
    const { pki, old, crossed } = await crossCertified(['N1', 'N2'])
    const [x1 = '', x2 = ''] = crossed.map(({ id }) => id)
    await done(pki.post(`issuer/${x1}/revoke`))
    for (let n = 0; n < 2; n++) {
      expectRefused(
        await pki.post(`issuer/${x2}/revoke`),
        400,
        expect.stringMatching(`another certificate with serial ${old.serial_number} was revoked .* has another issuer`),
      )
    }
    expect(dataOf(await pki.get(`issuer/${x2}`))).toMatchObject({ revoked: false })
    expect(dataOf(await pki.get(`issuer/${x1}`))).toMatchObject({ revoked: true })
    expect(await recorded(pki)).toEqual([[hex(old.serial_number), crossed[0]?.parent, 1]])
    await done(pki.post(`issuer/${x1}/revoke`))
  })

  test('and its twin under another parent at the same time: the list of each that shows as revoked names it', async () => {
    const { pki, old, crossed } = await crossCertified(['N1', 'N2'])
    const statuses = await Promise.all(crossed.map(async ({ id }) => (await pki.post(`issuer/${id}/revoke`)).status))
    expect(statuses.toSorted()).toEqual([200, 400])
    const revoked = crossed.filter((_, n) => statuses[n] === 200)
    expect(await recorded(pki)).toEqual([[hex(old.serial_number), revoked[0]?.parent, 1]])
    for (const [n, { id }] of crossed.entries()) {
      expect(dataOf(await pki.get(`issuer/${id}`)).revoked).toBe(statuses[n] === 200)
    }
  })

  test('that signed itself is possible after its cross-certificate was revoked', async () => {
    const { pki, rootId, crossed } = await crossCertified(['N1'], true)
    await done(pki.post(`issuer/${crossed[0]?.id}/revoke`))
    expect(dataOf(await done(pki.post(`issuer/${rootId}/revoke`))).revoked).toBe(true)
  })

  test('is advised only for the certificate of an issuer, not for another one with its serial', async () => {
    const { pki, old, certificates, crossed } = await crossCertified(['N1', 'N2'], true)
    const [x1, x2] = crossed.map(({ id }) => id)
    const refusal = async (body: object) => errorsOf(await pki.post('revoke', body))[0]
    expect(await refusal({ certificate: certificates[1] })).toBe(
      `adding issuer (id: ${x2}) to its own CRL is not allowed; revoke the issuer by issuer/${x2}/revoke`,
    )
    await done(pki.delete(`issuer/${x2}`))
    const other = await refusal({ certificate: certificates[1] })
    expect(other).toMatch(/^adding issuer \(id: .*\) to its own CRL is not allowed; the given certificate is another/)
    expect(other).toMatch(/: import it as an issuer, and revoke that one$/)
    const bySerial = await refusal({ serial_number: old.serial_number })
    expect(bySerial).toContain(`issuer/${x1}/revoke`)
    expect(bySerial).toContain(' or issuer/')
  })

  test('that is unknown is refused', async () => {
    const pki = await createAuthority(node)
    expect(errorsOf(await pki.post('issuer/nobody/revoke'))).toEqual([
      'unable to find PKI issuer for reference: nobody',
    ])
    const limited = await node.limited(`path "${pki.path}/issuer/+" { capabilities = ["update"] }`)
    expect((await limited.post(`${pki.path}/issuer/default/revoke`)).status).toBe(403)
  })

  test('at the same time as its deletion, sixteen times: each is done or refused, without a 5xx', async () => {
    const { pki, sub } = await hierarchy()
    const replies = await Promise.all(
      Array.from({ length: 16 }, (_, n) =>
        n === 8 ? pki.delete(`issuer/${sub.id}`) : pki.post(`issuer/${sub.id}/revoke`),
      ),
    )
    for (const { status, text } of replies) expect([200, 400], text).toContain(status)
    expect((await recorded(pki)).length).toBeLessThanOrEqual(1)
  })
})
