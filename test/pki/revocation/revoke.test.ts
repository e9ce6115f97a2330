import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, useNode } from '../../api/node.ts'
import { type Answer, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { csrOf } from '../api/csr.ts'
import { bundleOf } from '../proof/outside.ts'

const node = useNode({ workers: 2 })

/** A mount with a root and a role. */
async function authority(role: Answer = {}): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r', role)
  return pki
}
const issue = async (pki: TestAuthority, more: Answer = {}): Promise<Answer> =>
  dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h', ...more })))

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*[1-9])?Z$/

describe('revoke', () => {
  test('by the serial number in any form answers when; repeated, the same', async () => {
    const pki = await authority()
    const { serial_number: serial } = await issue(pki)
    const first = await pki.post('revoke', { serial_number: serial })
    const revoked = {
      revocation_time: expect.any(Number),
      revocation_time_rfc3339: expect.stringMatching(rfc3339),
      state: 'revoked',
    }
    expectData(first, revoked)
    const { revocation_time: seconds, revocation_time_rfc3339: moment } = dataOf(first)
    expect(Math.floor(Date.parse(String(moment)) / 1000)).toBe(seconds)
    for (const text of [String(serial).toUpperCase(), String(serial).replaceAll(':', '-')]) {
      expectData(await pki.post('revoke', { serial_number: text }), dataOf(first))
    }
    const read = dataOf(await pki.get(`cert/${serial}`))
    expect(read).toMatchObject({ revocation_time: seconds, revocation_time_rfc3339: moment })
  })

  test('by the certificate stores one that was not stored', async () => {
    const pki = await authority({ no_store: true })
    const { serial_number: serial, certificate } = await issue(pki)
    expect((await pki.get(`cert/${serial}`)).status).toBe(404)
    expectRefused(
      await pki.post('revoke', { serial_number: serial }),
      400,
      `certificate with serial ${serial} not found.`,
    )
    const revoked = await done(pki.post('revoke', { certificate }))
    expect(dataOf(revoked).state).toBe('revoked')
    const read = dataOf(await pki.get(`cert/${serial}`))
    expect(read).toMatchObject({ certificate, revocation_time: dataOf(revoked).revocation_time })
    expectData(await pki.post('revoke', { serial_number: serial }), dataOf(revoked))
    expectData(await pki.post('revoke', { certificate }), dataOf(revoked))
  })

  test('needs exactly one of serial_number and certificate', async () => {
    const pki = await authority()
    const neither = 'The serial number or certificate to revoke must be provided.'
    expectRefused(await pki.post('revoke'), 400, neither)
    expectRefused(await pki.post('revoke', { serial_number: '', certificate: '' }), 400, neither)
    const both = 'Must provide either the certificate or the serial to revoke; not both.'
    expectRefused(await pki.post('revoke', { serial_number: 'aa:bb', certificate: 'x' }), 400, both)
  })

  test.each([
    ['aa:bb', 'certificate with serial aa:bb not found.'],
    ['AABB', 'serial_number must be at most 20 hexadecimal'],
    ['xx', 'serial_number must be at most 20 hexadecimal'],
    [Array.from({ length: 40 }, () => 'aa').join(':'), 'serial_number must be at most 20 hexadecimal'],
  ])('of the serial number %s is refused', async (serial, text) => {
    const pki = await authority()
    const refused = await pki.post('revoke', { serial_number: serial })
    expect({ status: refused.status, text: errorsOf(refused)[0] }).toEqual({
      status: 400,
      text: expect.stringContaining(text),
    })
  })

  test('of a certificate that cannot be read is refused', async () => {
    const pki = await authority()
    const refusal = async (certificate: string) => errorsOf(await pki.post('revoke', { certificate }))
    expect(await refusal('/tmp/cert.pem')).toEqual([expect.stringMatching(/^provided certificate data was too short/)])
    expect(await refusal('x'.repeat(100))).toEqual(['certificate contains no PEM data'])
    const { bundle, certificate, privateKey } = bundleOf('Stranger')
    expect(await refusal(certificate.replace('MII', 'AAA'))).toEqual([
      expect.stringMatching(/^certificate could not be parsed: /),
    ])
    const one = 'certificate must be exactly one certificate in PEM'
    expect(await refusal(bundle)).toEqual([one])
    expect(await refusal(privateKey)).toEqual([one])
    expect(await refusal(certificate + certificate)).toEqual([one])
  })

  test('of a certificate of a stranger is refused, also when it has the name of an issuer', async () => {
    const pki = await authority()
    const refused = /^unable to verify signature on presented cert from any present issuer in this mount; /
    for (const name of ['Stranger', 'Test Root']) {
      const { certificate } = bundleOf(name)
      expect(errorsOf(await pki.post('revoke', { certificate }))).toEqual([expect.stringMatching(refused)])
    }
    const other = await authority()
    const { certificate } = await issue(other)
    expect(errorsOf(await pki.post('revoke', { certificate }))).toEqual([expect.stringMatching(refused)])
  })

  test('of an issuer is refused and names the path that does it', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    for (const by of [{ serial_number: root.serial_number }, { certificate: root.certificate }]) {
      const text = `adding issuer (id: ${root.issuer_id}) to its own CRL is not allowed; revoke the issuer by issuer/${root.issuer_id}/revoke`
      expectRefused(await pki.post('revoke', by), 400, text)
    }
  })

  test('treats an intermediate that is not an issuer here like any other certificate', async () => {
    const pki = await authority()
    const csr = await csrOf('/CN=Sub')
    const sub = dataOf(await done(pki.post('root/sign-intermediate', { csr, ttl: '1h' })))
    expect(dataOf(await done(pki.post('revoke', { serial_number: sub.serial_number }))).state).toBe('revoked')
  })

  test('of an expired certificate records nothing and warns', async () => {
    const pki = await authority()
    const { serial_number: serial, certificate } = await issue(pki, { ttl: '1s' })
    for (const by of [{ serial_number: serial }, { certificate }]) {
      const answer = await pki.post('revoke', by)
      expectData(answer, null, [
        expect.stringMatching(`^certificate with serial ${serial} already expired; refusing to`),
      ])
    }
    expect(dataOf(await pki.get(`cert/${serial}`)).revocation_time).toBe(0)
    expect((await pki.list('certs/revoked')).status).toBe(404)
  })

  test('whose issuer was deleted is recorded, with a warning that no list names it', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    await pki.role('r')
    const { serial_number: serial } = await issue(pki)
    await done(pki.delete('issuer/one'))
    const revoked = await done(pki.post('revoke', { serial_number: serial }))
    expect(dataOf(revoked).state).toBe('revoked')
    expect(warningsOf(revoked)).toEqual([expect.stringContaining('no list names it until')])
  })

  test('whose issuer no longer signs lists is recorded, with a warning that no list will name it', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    await pki.role('r')
    const { serial_number: serial } = await issue(pki)
    await done(pki.patch('issuer/one', { usage: 'read-only' }))
    const revoke = () => done(pki.post('revoke', { serial_number: serial }))
    const why = (reason: string) => [`no list of this mount will name certificate ${serial}: ${reason}`]
    expect(warningsOf(await revoke())).toEqual(why('no issuer of this name and key has the usage crl-signing'))
    await done(pki.delete('issuer/one'))
    expect(warningsOf(await revoke())).toEqual(why('its issuer is not in this mount'))
  })

  test.each([['keyCompromise'], ['keycompromise'], ['1'], [1], ['superseded'], ['unspecified'], ['10']])(
    'takes the reason %j',
    async (reason) => {
      const pki = await authority()
      const { serial_number: serial } = await issue(pki)
      expect((await pki.post('revoke', { serial_number: serial, reason })).status).toBe(200)
    },
  )

  test.each([['certificateHold'], ['6'], ['removeFromCRL'], [8], ['7'], ['11'], ['-1'], ['because'], ['constructor']])(
    'refuses the reason %j',
    async (reason) => {
      const pki = await authority()
      const { serial_number: serial } = await issue(pki)
      const refused = await pki.post('revoke', { serial_number: serial, reason })
      expect({ status: refused.status, text: errorsOf(refused)[0] }).toEqual({
        status: 400,
        text: expect.stringMatching(/^reason: /),
      })
      expect(dataOf(await pki.get(`cert/${serial}`)).revocation_time).toBe(0)
    },
  )

  test('needs update on its path, and revoke-with-key on its own', async () => {
    const pki = await authority()
    const { serial_number: serial, private_key: key } = await issue(pki)
    const limited = await node.limited(`path "${pki.path}/revoke-with-key" { capabilities = ["update"] }`)
    expect((await limited.post(`${pki.path}/revoke`, { serial_number: serial })).status).toBe(403)
    const revoked = await limited.post(`${pki.path}/revoke-with-key`, { serial_number: serial, private_key: key })
    expect(revoked.status).toBe(200)
    const stranger = node.server.client('')
    expect((await stranger.post(`${pki.path}/revoke-with-key`, { serial_number: serial })).status).toBe(403)
  })
})

describe('lists of revoked certificates', () => {
  test('go page by page, and are found without their mount', async () => {
    const pki = await authority()
    for (const list of ['certs/revoked', 'certs/unified-revoked', 'certs/revocation-queue']) {
      expect((await pki.list(list)).status).toBe(404)
      expect((await node.server.client('').list(`${pki.path}/${list}`)).status).toBe(403)
      expect((await node.root.list(list)).status).toBe(404)
      expect(errorsOf(await pki.list(`${list}?after=zz`))[0]).toContain('after: ')
    }
    const serials: string[] = []
    for (let n = 0; n < 5; n++) {
      const { serial_number: serial } = await issue(pki)
      await done(pki.post('revoke', { serial_number: serial }))
      serials.push(String(serial))
    }
    await issue(pki)
    const sorted = serials.toSorted()
    expect(dataOf(await pki.list('certs/revoked'))).toEqual({ keys: sorted })
    expect(dataOf(await pki.list(`certs/revoked?after=${sorted[1]}&limit=2`))).toEqual({ keys: sorted.slice(2, 4) })
    const unified = dataOf(await pki.list('certs/unified-revoked?limit=2'))
    expect(unified).toEqual({
      keys: sorted.slice(0, 2),
      key_info: Object.fromEntries(sorted.slice(0, 2).map((serial) => [serial, { revoking_clusters: ['default'] }])),
    })
    expect((await pki.list(`certs/unified-revoked?after=${sorted.at(-1)}`)).status).toBe(404)
  })
})
