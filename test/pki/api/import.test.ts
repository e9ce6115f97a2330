import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'
import { openssl } from './csr.ts'

const node = useSharedNode()

/** A self-signed CA made by openssl: certificate and key, PEM. */
async function foreignCa(name: string, options: readonly string[] = []): Promise<{ pem: string; key: string }> {
  const text = await openssl([
    ...['req', '-x509', '-new', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-days', '3650'],
    ...['-keyout', '-', '-subj', `/CN=${name}`, ...options],
  ])
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----/.exec(text) ?? []
  const [pem = ''] = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(text) ?? []
  return { pem, key }
}

describe('issuers/import/bundle', () => {
  test('takes certificates and keys, links them, and issues', async () => {
    const pki = await createAuthority(node)
    const ca = await foreignCa('Foreign')
    const data = dataOf(await done(pki.post('issuers/import/bundle', { pem_bundle: `${ca.key}\nhello\n${ca.pem}\n` })))
    const [issuer, key] = [data.imported_issuers, data.imported_keys].map((ids) => (ids as string[])[0])
    expect(data).toEqual({
      ...{ imported_issuers: [issuer], imported_keys: [key], existing_issuers: null, existing_keys: null },
      mapping: { [String(issuer)]: key },
    })
    expect(dataOf(await pki.get('config/issuers')).default).toBe(issuer)
    const read = dataOf(await pki.get(`key/${key}`))
    expect(read).toMatchObject({ key_type: 'ec', key_bits: 256, origin: 'imported', ever_plaintext: true })
    await pki.role('r')
    const leaf = certificateOf(dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))))
    expect(leaf.verify(certificateOf({ certificate: ca.pem }).publicKey)).toBe(true)
    expect((await pki.list('certs')).status).toBe(200)
    expect((dataOf(await pki.list('certs')).keys as string[]).length).toBe(1)
  })

  test('a leaf names its issuer by the identifier that the issuer’s certificate has', async () => {
    const pki = await createAuthority(node)
    const ca = await foreignCa('Foreign', ['-addext', 'subjectKeyIdentifier=01020304'])
    await done(pki.post('issuers/import/bundle', { pem_bundle: `${ca.pem}\n${ca.key}` }))
    await pki.role('r')
    const leaf = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    const said = await openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(leaf.certificate) })
    expect(said).toMatch(/Authority Key Identifier:\s+01:02:03:04\n/)
  })

  test('the default issuer follows the only new issuer with a key, but none of several', async () => {
    const pki = await createAuthority(node)
    const first = await pki.root()
    await done(pki.post('config/issuers', { default_follows_latest_issuer: true }))
    const [a, b, c] = await Promise.all(['A', 'B', 'C'].map((name) => foreignCa(name)))
    const both = await done(pki.post('config/ca', { pem_bundle: [a?.key, a?.pem, b?.key, b?.pem].join('\n') }))
    expect(warningsOf(both)[0]).toMatch(/^Default issuer left unchanged: /)
    expect(dataOf(await pki.get('config/issuers')).default).toBe(first.issuer_id)
    const one = await done(pki.post('config/ca', { pem_bundle: [a?.pem, c?.key, c?.pem].join('\n') }))
    expect(dataOf(await pki.get('config/issuers')).default).toBe((dataOf(one).imported_issuers as string[])[0])
  })

  test('an imported key that is weak signs, and is explained, with a warning', async () => {
    const pki = await createAuthority(node)
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    await done(pki.post('keys/import', { pem_bundle: pem }))
    const weak = "The issuer's RSA key has 1024 bits: signatures of such keys can be forged"
    const root = await done(pki.post('root/generate/existing', { common_name: 'Weak', ttl: '100h' }))
    expect(warningsOf(root)).toContain(weak)
    await pki.role('r')
    const asked = { common_name: 'a.example', ttl: '1h' }
    expect(warningsOf(await done(pki.post('issue/r', asked)))).toContain(weak)
    expect(dataOf(await done(pki.post('roles/r/explain', asked))).warnings).toEqual([weak])
    const { certificate } = dataOf(root)
    expect(warningsOf(await done(pki.post('root/sign-self-issued', { certificate })))).toEqual([weak])
  })

  test('warns of a mount without URLs, once for each issuer that is new', async () => {
    const pki = await createAuthority(node)
    const { pem: certificate } = await foreignCa('Foreign')
    const set = () => done(pki.post('intermediate/set-signed', { certificate }))
    expect(warningsOf(await set())).toEqual([expect.stringMatching(/^This mount hasn't configured any/)])
    expect(warningsOf(await set())).toEqual([])
  })

  test('recognises known entries, in any encoding of the text', async () => {
    const pki = await createAuthority(node)
    const ca = await foreignCa('Foreign')
    const first = dataOf(await pki.post('config/ca', { pem_bundle: `${ca.pem}\n${ca.key}` }))
    const sec1 = await openssl(['ec', '-in', 'key', '-outform', 'PEM'], { key: ca.key })
    const again = dataOf(await pki.post('config/ca', { pem_bundle: `${sec1}\n${ca.pem}\n${ca.pem}` }))
    expect(again).toEqual({
      ...{ imported_issuers: null, imported_keys: null },
      ...{ existing_issuers: first.imported_issuers, existing_keys: first.imported_keys, mapping: first.mapping },
    })
    const named = await pki.post('keys/import', { pem_bundle: sec1, key_name: 'other' })
    expect(warningsOf(named)).toEqual(['Key already imported, use key/ endpoint to update name.'])
  })

  test('a key that comes later is linked to the certificate that was there', async () => {
    const pki = await createAuthority(node)
    const ca = await foreignCa('Foreign')
    const { imported_issuers: ids } = dataOf(await pki.post('issuers/import/cert', { pem_bundle: ca.pem }))
    const [id] = ids as string[]
    expect(dataOf(await pki.get(`issuer/${id}`)).key_id).toBe('')
    expect(dataOf(await pki.get('config/issuers')).default).toBe('')
    const key = dataOf(await pki.post('keys/import', { pem_bundle: ca.key, key_name: 'k' }))
    expect(dataOf(await pki.get(`issuer/${id}`)).key_id).toBe(key.key_id)
  })

  test('builds chains over cross-signed issuers, and refuses CSRs', async () => {
    const [a, b] = [await createAuthority(node), await createAuthority(node)]
    const rootA = await a.root({ common_name: 'A', key_name: 'k' })
    const rootB = await b.root({ common_name: 'B' })
    const { csr } = dataOf(await done(a.post('intermediate/cross-sign', { common_name: 'A', key_ref: 'k' })))
    const crossed = dataOf(await done(b.post('root/sign-intermediate', { csr, ttl: '8760h' })))
    const bundle = `${crossed.certificate}\n${rootB.certificate}`
    const { imported_issuers: ids } = dataOf(await done(a.post('issuers/import/cert', { pem_bundle: bundle })))
    const pems = (list: unknown) => (list as string[]).map((pem) => pem.trim())
    const chain = pems(dataOf(await a.get(`issuer/${rootA.issuer_id}`)).ca_chain)
    expect(chain).toEqual([rootA.certificate, crossed.certificate, rootB.certificate])
    const [crossId] = ids as string[]
    expect(pems(dataOf(await a.get(`issuer/${crossId}`)).ca_chain)[0]).toBe(crossed.certificate)
    expect(dataOf(await a.get(`issuer/${crossId}`)).key_id).toBe(rootA.key_id)
  })

  test('refuses certificates that are not CAs, invalid PEM, and keys that are not allowed, and keeps nothing', async () => {
    const pki = await createAuthority(node)
    const ca = await foreignCa('Foreign')
    const leaf = await foreignCa('Leaf', ['-addext', 'basicConstraints=critical,CA:FALSE'])
    const refusal = async (path: string, body: object) => {
      const reply = await pki.post(path, body)
      expect(reply.status, reply.text).toBe(400)
      return errorsOf(reply)[0]
    }
    const bundle = 'issuers/import/bundle'
    expect(await refusal(bundle, {})).toBe("'pem_bundle' and 'certificate' parameters were empty")
    const both = { pem_bundle: ca.pem, certificate: ca.pem }
    expect(await refusal(bundle, both)).toBe("'pem_bundle' and 'certificate' parameters were both provided")
    expect(await refusal(bundle, { pem_bundle: 'ca.pem' })).toContain('provided data for import was too short')
    expect(await refusal(bundle, { pem_bundle: 'x'.repeat(100) })).toContain('error when parsing block 1: invalid PEM')
    expect(await refusal(bundle, { pem_bundle: `${ca.pem}\n${ca.key}\n${leaf.pem}` })).toContain(
      'Error parsing issuer 1: Refusing to import non-CA certificate',
    )
    const keys = 'private keys found in the PEM bundle but not allowed by the path; use /issuers/import/bundle'
    expect(await refusal('issuers/import/cert', { pem_bundle: `${ca.pem}\n${ca.key}` })).toBe(keys)
    expect(await refusal(bundle, { certificate: `${ca.pem}\n${ca.key}` })).toBe(keys)
    const dsa = generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 })
    const foreign = dsa.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    expect(await refusal(bundle, { pem_bundle: `${ca.pem}\n${foreign}` })).toContain('Error parsing key 0')
    const encrypted = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
      ...{ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' },
    })
    expect(await refusal(bundle, { pem_bundle: String(encrypted) })).toContain('encrypted')
    for (const what of ['issuers', 'keys']) expect((await pki.list(what)).status).toBe(404)
  })

  test.each([
    ['rsa', { modulusLength: 1024 }, 1024],
    ['rsa', { modulusLength: 2560 }, 2560],
    ['ec', { namedCurve: 'secp224r1' }, 224],
    ['ec', { namedCurve: 'secp521r1' }, 521],
    ['ed25519', {}, 0],
  ])('keys/import takes %s %j', async (type, options, bits) => {
    const pki = await createAuthority(node)
    const pair = generateKeyPairSync(type as 'rsa', options as { modulusLength: number })
    const pem = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    const made = dataOf(await done(pki.post('keys/import', { pem_bundle: pem, key_name: 'k' })))
    expect(made).toEqual({ key_id: expect.any(String), key_name: 'k', key_type: type })
    expect(dataOf(await pki.get('key/k')).key_bits).toBe(bits)
    const { csr } = dataOf(await done(pki.post('intermediate/cross-sign', { common_name: 'X' })))
    const said = await openssl(['req', '-in', 'csr', '-verify', '-noout', '-pubkey'], { csr: String(csr) })
    expect(said.trim()).toBe(pair.publicKey.export({ format: 'pem', type: 'spki' }).toString().trim())
  })

  test('keys/import refuses a key with a certificate, several keys and no key', async () => {
    const pki = await createAuthority(node)
    const [ca, other] = [await foreignCa('Foreign'), await foreignCa('Other')]
    for (const pem of [`${ca.key}\n${ca.pem}`, `${ca.pem}\n${ca.key}`, `${ca.key}\n${other.key}`, ca.pem]) {
      const text = 'only a single key can be present within the pem_bundle for importing'
      expectRefused(await pki.post('keys/import', { pem_bundle: pem }), 400, text)
    }
    expect((await pki.list('keys')).status).toBe(404)
    const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----'
    await done(pki.post('keys/import', { pem_bundle: `${parameters}\n${ca.key}` }))
  })

  test.each(['secp256k1', 'brainpoolP256r1'])('keys/import refuses %s', async (namedCurve) => {
    const pki = await createAuthority(node)
    const pem = generateKeyPairSync('ec', { namedCurve }).privateKey.export({ format: 'pem', type: 'pkcs8' })
    expect((await pki.post('keys/import', { pem_bundle: String(pem) })).status).toBe(400)
  })
})
