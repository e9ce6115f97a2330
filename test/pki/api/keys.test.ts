import { describe, expect, test } from 'vitest'
import { expectRefused, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, warningsOf } from './authority.ts'

const node = useSharedNode()

const invalid = 'Validation for key_type, key_bits failed: '

describe('keys/generate', () => {
  test.each([
    ['rsa', 2048],
    ['rsa', 3072],
    ['ec', 224],
    ['ec', 256],
    ['ec', 384],
    ['ec', 521],
    ['ed25519', 0],
  ])('makes %s of %i bits', async (type, bits) => {
    const pki = await createAuthority(node)
    const made = dataOf(await pki.post('keys/generate/internal', { key_type: type, key_bits: bits, key_name: 'k' }))
    expect(made).toEqual({ key_id: expect.any(String), key_name: 'k', key_type: type })
    const read = dataOf(await pki.get('key/k'))
    expect(read).toMatchObject({ ...made, key_bits: bits, ever_plaintext: type === 'ed25519' })
    expect(read.subject_key_id).toMatch(/^[0-9a-f]{2}(:[0-9a-f]{2}){19}$/)
  })

  test('the first key becomes the default one', async () => {
    const pki = await createAuthority(node)
    const made = dataOf(await pki.post('keys/generate/internal', { key_type: 'ec' }))
    expect(dataOf(await pki.get('key/default')).key_id).toBe(made.key_id)
  })

  test.each([
    [{ key_type: 'zz' }, `${invalid}unknown key type zz`],
    [{ key_type: 'rsa', key_bits: 1024 }, `${invalid}RSA keys < 2048 bits are unsafe and not supported: got 1024`],
    [{ key_type: 'rsa', key_bits: 2049 }, `${invalid}unsupported bit length for RSA key: 2049`],
    [{ key_type: 'ec', key_bits: 1024 }, `${invalid}unsupported bit length for EC key: 1024`],
    [{ key_name: 'default' }, "reserved keyword 'default' can not be used as key name"],
    [{ key_name: 'a/b' }, 'key name contained invalid characters'],
    [{ managed_key_name: 'm' }, 'managed_key_name and managed_key_id are for keys of type kms'],
  ])('refuses %j', async (body, text) => {
    const pki = await createAuthority(node)
    expectRefused(await pki.post('keys/generate/internal', body), 400, text)
    expect((await pki.list('keys')).status).toBe(404)
  })
})

describe('a key', () => {
  test('is found by id and name, renamed, and loses its name', async () => {
    const pki = await createAuthority(node)
    const { key_id: id } = dataOf(await pki.post('keys/generate/internal', { key_type: 'ec', key_name: 'one' }))
    expect(dataOf(await pki.post('key/one', { key_name: 'two' }))).toEqual({
      ...{ key_id: id, key_name: 'two', key_type: 'ec' },
    })
    expect((await pki.get('key/one')).status).toBe(404)
    expect(errorsOf(await pki.get('key/one'))).toEqual(['unable to find PKI key for reference: one'])
    const nameless = await pki.post(`key/${id}`, {})
    expect(dataOf(nameless).key_name).toBe('')
    expect(warningsOf(nameless)[0]).toContain('Name successfully deleted')
    expect(dataOf(await pki.list('keys'))).toEqual({
      keys: [id],
      key_info: { [String(id)]: { key_name: '', is_default: true } },
    })
  })

  test('has a name of its own', async () => {
    const pki = await createAuthority(node)
    await pki.post('keys/generate/internal', { key_type: 'ec', key_name: 'one' })
    await pki.post('keys/generate/internal', { key_type: 'ec', key_name: 'two' })
    expectRefused(await pki.post('key/two', { key_name: 'one' }), 400, 'key name already in use')
    expectRefused(await pki.post('key/two', { key_name: 'a/b' }), 400, 'new key name outside of valid character limits')
    const again = await pki.post('keys/generate/internal', { key_type: 'ec', key_name: 'one' })
    expectRefused(again, 400, 'key name already in use')
    expect(dataOf(await pki.post('key/two', { key_name: 'two' })).key_name).toBe('two')
  })

  test('is not deleted while an issuer uses it, and then for ever', async () => {
    const pki = await createAuthority(node)
    const made = await pki.root({ key_name: 'ca' })
    expectRefused(await pki.delete('key/ca'), 400, `Failed to Delete Key.  Key in Use by Issuer: ${made.issuer_id}`)
    await pki.delete(`issuer/${made.issuer_id}`)
    const gone = await pki.delete('key/ca')
    expect(gone.status).toBe(200)
    expect(warningsOf(gone)[0]).toContain('this was configured as the default key')
    expect((await pki.delete('key/ca')).status).toBe(204)
    expect((await pki.get('key/ca')).status).toBe(404)
    expect(dataOf(await pki.get('config/keys'))).toMatchObject({ default: '' })
  })
})

describe('residence', () => {
  test('comes from the request, or else from config/keys, and is shown', async () => {
    const pki = await createAuthority(node)
    const make = async (body: object) => pki.post('keys/generate/internal', { key_type: 'ec', ...body })
    await make({ key_name: 'first' })
    await make({ key_name: 'second', residence: 'token' })
    expect(dataOf(await pki.post('config/keys', { residence: 'token' }))).toMatchObject({ residence: 'token' })
    await make({ key_name: 'third' })
    await make({ key_name: 'fourth', residence: 'wrapped' })
    const seen = []
    for (const name of ['first', 'second', 'third', 'fourth']) {
      seen.push(dataOf(await pki.get(`key/${name}`)).residence)
    }
    expect(seen).toEqual(['wrapped', 'token', 'token', 'wrapped'])
    expectRefused(await make({ residence: 'x' }), 400, 'residence must be "wrapped" or "token"')
    expect((await pki.post('config/keys', { residence: 'x' })).status).toBe(400)
  })

  test.each([{ residence: 'token' }, {}])('a key of the token alone is not handed out: %j', async (body) => {
    const pki = await createAuthority(node)
    await pki.post('config/keys', { residence: 'token' })
    const reply = await pki.post('keys/generate/exported', { key_type: 'ec', ...body })
    expect(reply.status).toBe(400)
    expect(errorsOf(reply)[0]).toContain('residence')
    expect((await pki.list('keys')).status).toBe(404)
  })

  test.each(['rsa', 'ec', 'ed25519'])('a key of type %s in the token signs, and is gone with its row', async (type) => {
    const pki = await createAuthority(node)
    const root = await pki.root({ key_type: type, residence: 'token', key_name: 'k' })
    const certificate = certificateOf(root)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    await pki.delete(`issuer/${root.issuer_id}`)
    expect((await pki.delete('key/k')).status).toBe(200)
  })
})
