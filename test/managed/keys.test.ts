import { describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello, uuid } from '../api/node.ts'
import { at, dataOf, useWorld } from './world.ts'

const world = useWorld()

describe('a transit key of type managed_key', () => {
  test('is made by name or by uuid, and shows its managed key and the attributes in the token', async () => {
    const name = await world.managed(world.settingsOf())
    const { UUID } = dataOf(await done(world.root.get(at(name))))
    const keys = [fresh('k'), fresh('k')] as const
    await done(world.root.post(`transit/keys/${keys[0]}`, { type: 'managed_key', managed_key_name: name }))
    await done(world.root.post(`transit/keys/${keys[1]}`, { type: 'managed_key', managed_key_id: UUID }))
    for (const key of keys) {
      const read = dataOf(await done(world.root.get(`transit/keys/${key}`)))
      expect(read).toMatchObject({
        ...{ type: 'managed_key', supports_encryption: false, supports_decryption: false, supports_signing: true },
        ...{ supports_derivation: false, exportable: false, latest_version: 1 },
        ...{ managed_key_name: name, managed_key_id: UUID },
        keys: { 1: { name: 'P-256', public_key: expect.stringContaining('BEGIN PUBLIC KEY') } },
        custody: { 1: { residence: 'token', managed_key: UUID, local: true, hmac: { residence: expect.any(String) } } },
      })
    }
  })

  test('rotates to another managed key, in another module too, and old signatures still verify', async () => {
    const key = await world.keyOf(world.settingsOf())
    const old = (await done(world.root.post(`transit/sign/${key}`, { input: hello }))).string('data.signature')
    expectRefused(
      await world.root.post(`transit/keys/${key}/rotate`),
      400,
      'one of managed_key_name and managed_key_id is required for keys of type managed_key',
    )
    const next = await world.managed(world.elsewhere({ key_label: 'rsa', mechanism: '0xd' }))
    const rotated = await done(world.root.post(`transit/keys/${key}/rotate`, { managed_key_name: next }))
    expect(dataOf(rotated)).toMatchObject({ managed_key_name: next, latest_version: 2 })
    const signed = (await done(world.root.post(`transit/sign/${key}`, { input: hello }))).string('data.signature')
    expect(signed).toMatch(/^vault:v2:/)
    for (const signature of [old, signed]) {
      expect(dataOf(await done(world.root.post(`transit/verify/${key}`, { input: hello, signature })))).toEqual({
        valid: true,
      })
    }
    const first = await done(world.root.post(`transit/sign/${key}`, { input: hello, key_version: 1 }))
    expect(first.string('data.signature')).toMatch(/^vault:v1:/)
  })

  test.each([
    [{ derived: true }, 'key derivation and convergent encryption not supported for keys of type managed_key'],
    [
      { convergent_encryption: true },
      'key derivation and convergent encryption not supported for keys of type managed_key',
    ],
    [{ exportable: true }, 'keys of type managed_key stay in their token: they cannot be exported or backed up'],
    [
      { allow_plaintext_backup: true },
      'keys of type managed_key stay in their token: they cannot be exported or backed up',
    ],
    [
      { auto_rotate_period: '24h' },
      'keys of type managed_key do not rotate automatically: each rotation must name a managed key',
    ],
  ])('%j is refused at creation and at configuration', async (wish, text) => {
    const name = await world.managed(world.settingsOf())
    const made = await world.root.post(`transit/keys/${fresh('k')}`, {
      type: 'managed_key',
      managed_key_name: name,
      ...wish,
    })
    expectRefused(made, 400, text)
    if ('derived' in wish || 'convergent_encryption' in wish) return
    expectRefused(
      await world.root.post(`transit/keys/${await world.keyOf(world.settingsOf())}/config`, wish),
      400,
      text,
    )
  })

  test('has the size of its managed key: a key_size is refused, and 0, which Terraform sends, is none', async () => {
    const made = { type: 'managed_key', managed_key_name: await world.managed(world.settingsOf()) }
    const create = (key_size: number) => world.root.post(`transit/keys/${fresh('k')}`, { ...made, key_size })
    for (const size of [1, 32, -1]) {
      expectRefused(await create(size), 400, 'key_size is not valid for algorithm managed_key')
    }
    expect(dataOf(await done(create(0)))).toMatchObject({ type: 'managed_key', latest_version: 1 })
  })

  test('needs a managed key that exists; other types take none', async () => {
    const type = 'managed_key'
    expectRefused(
      await world.root.post(`transit/keys/${fresh('k')}`, { type }),
      400,
      'one of managed_key_name and managed_key_id is required for keys of type managed_key',
    )
    const missing = await world.root.post(`transit/keys/${fresh('k')}`, { type, managed_key_name: 'nothing' })
    expectRefused(missing, 400, 'managed key "nothing" does not exist')
    const other = await world.root.post(`transit/keys/${fresh('k')}`, { managed_key_name: 'nothing' })
    expectRefused(other, 400, 'managed_key_name and managed_key_id are for keys of type managed_key')
    const imported = await world.root.post(`transit/keys/${fresh('k')}/import`, {
      type,
      ciphertext: base64(Buffer.alloc(600)),
    })
    expect(imported.status).toBe(400)
  })

  test('that exists stays unchanged when it is created again, whichever worker is asked', async () => {
    const made = { type: 'managed_key', managed_key_name: await world.managed(world.settingsOf()) }
    const path = `transit/keys/${fresh('k')}`
    const first = await done(world.root.post(path, made))
    const again = await Promise.all(Array.from({ length: 16 }, () => world.root.post(path, made)))
    for (const reply of again)
      expect([reply.status, reply.body]).toEqual([200, expect.objectContaining({ data: dataOf(first) })])
  })

  test('export and backup are refused with an explanation', async () => {
    const key = await world.keyOf(world.settingsOf())
    for (const path of [`transit/export/signing-key/${key}`, `transit/backup/${key}`]) {
      const refused = await world.root.get(path)
      expect([refused.status, refused.text]).toEqual([400, expect.stringMatching(/exported|backup|exportable/i)])
    }
  })

  test('is deleted without its key: the managed key serves on', async () => {
    const name = await world.managed(world.settingsOf())
    const key = fresh('k')
    await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    await done(world.root.post(`transit/keys/${key}/config`, { deletion_allowed: true }))
    await done(world.root.delete(`transit/keys/${key}`))
    await done(world.root.post(`${at(name)}/test/sign`))
  })
})

describe('which mounts may use a managed key', () => {
  test('those that list it in allowed_managed_keys, from the answer to the tune call on, in both directions', async () => {
    const name = await world.managed(world.settingsOf({ any_mount: false }))
    const mount = fresh('m')
    await done(world.root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    const make = (key: string) =>
      world.root.post(`${mount}/keys/${key}`, { type: 'managed_key', managed_key_name: name })
    const refusal = `managed key "${name}" is not for this mount: set any_mount on it, or list it in the mount's allowed_managed_keys`
    expectRefused(await make('k'), 403, refusal)
    await done(world.root.post(`sys/mounts/${mount}/tune`, { allowed_managed_keys: name }))
    await done(make('k'))
    await done(world.root.post(`${mount}/sign/k`, { input: hello }))
    await done(world.root.post(`sys/mounts/${mount}/tune`, { allowed_managed_keys: 'another' }))
    for (let attempt = 0; attempt < 6; attempt++) {
      expectRefused(await world.root.post(`${mount}/sign/k`, { input: hello }), 403, refusal)
    }
  })

  test('a managed key is not deleted while a mount lists it', async () => {
    const name = await world.managed(world.settingsOf())
    const mount = fresh('m')
    await done(world.root.post(`sys/mounts/${mount}`, { type: 'transit', config: { allowed_managed_keys: [name] } }))
    const refused = await world.root.delete(at(name))
    expectRefused(
      refused,
      400,
      `managed key "${name}" is listed in allowed_managed_keys of the mount ${mount}/: take it out there first`,
    )
    await done(world.root.post(`sys/mounts/${mount}/tune`, { allowed_managed_keys: [] }))
    expect((await world.root.delete(at(name))).status).toBe(204)
    expect((await world.root.get(at(name))).status).toBe(404)
  })

  test('a managed key is not deleted while a version uses it, and is when the last one is gone', async () => {
    const name = await world.managed(world.settingsOf())
    const keys = [fresh('k'), fresh('k')]
    for (const key of keys) {
      await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    }
    const [one = '', other = ''] = keys
    for (let version = 2; version <= 3; version++) {
      await done(world.root.post(`transit/keys/${one}/rotate`, { managed_key_name: name }))
    }
    const refused = await world.root.delete(at(name))
    expect(refused.status).toBe(400)
    const uses = /is used by (?:transit\/keys\/\S+ version \d, ){2}transit\/keys\/\S+ version \d and others: /
    expect(refused.text).toMatch(uses)
    const end = async (key: string) => {
      await done(world.root.post(`transit/keys/${key}/config`, { deletion_allowed: true }))
      await done(world.root.delete(`transit/keys/${key}`))
    }
    await end(one)
    const text = `managed key "${name}" is used by transit/keys/${other} version 1: delete or trim what uses it first`
    expectRefused(await world.root.delete(at(name)), 400, text)
    await done(world.root.post(`transit/sign/${other}`, { input: hello }))
    await end(other)
    expect((await world.root.delete(at(name))).status).toBe(204)
  })

  test('keys of a removed mount do not count as uses of a managed key', async () => {
    const name = await world.managed(world.settingsOf())
    const mount = fresh('m')
    await done(world.root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    await done(world.root.post(`${mount}/keys/k`, { type: 'managed_key', managed_key_name: name }))
    expect((await world.root.delete(at(name))).text).toContain(`is used by ${mount}/keys/k version 1`)
    await done(world.root.delete(`sys/mounts/${mount}`))
    expect((await world.root.delete(at(name))).status).toBe(204)
  })
})

describe('sys/managed-keys/pkcs11', () => {
  test('shows everything but the PIN', async () => {
    const name = await world.managed(world.elsewhere({ usages: 'sign', key_id: '0x0B', max_parallel: 2 }))
    const read = await done(world.root.get(at(name)))
    expect(dataOf(read)).toEqual({
      ...{
        UUID: expect.stringMatching(uuid),
        name,
        type: 'pkcs11',
        library: 'other',
        token_label: world.foreign.label,
      },
      ...{
        key_label: 'ec',
        key_id: '0b',
        mechanism: 0x1041,
        pin: 'redacted',
        pin_refused: false,
        curve: '',
        key_bits: 0,
      },
      ...{ usages: ['sign'], any_mount: true, allow_generate_key: false, allow_replace_key: false },
      ...{ allow_store_key: false, force_rw_session: false, max_parallel: 2 },
    })
    expect(dataOf(await done(world.root.list('sys/managed-keys/pkcs11'))).keys).toContain(name)
  })

  test('an update changes only the given fields; a removed usage is refused at once, by every worker', async () => {
    const name = await world.managed(world.settingsOf())
    const key = fresh('k')
    await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    expect((await world.root.post(at(name), { usages: ['verify'], pin: 'redacted' })).status).toBe(204)
    for (let attempt = 0; attempt < 6; attempt++) {
      expectRefused(
        await world.root.post(`transit/sign/${key}`, { input: hello }),
        400,
        `managed key "${name}" may not sign: its usages are verify`,
      )
    }
  })

  test('a version keeps to its key: a managed key that names another one by now is refused', async () => {
    const name = await world.managed(world.settingsOf())
    const key = fresh('k')
    await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    await done(world.root.post(at(name), { key_label: 'ec384' }))
    const refused = await world.root.post(`transit/sign/${key}`, { input: hello })
    expectRefused(
      refused,
      400,
      `managed key "${name}" no longer names the key of this version: rotate to use the one it names now`,
    )
    await done(world.root.post(`transit/keys/${key}/rotate`, { managed_key_name: name }))
    await done(world.root.post(`transit/sign/${key}`, { input: hello }))
  })

  test('makes a key on demand, once, though several ask at the same time', async () => {
    const label = fresh('born')
    const name = await world.managed(world.settingsOf({ key_label: label, allow_generate_key: 'true', curve: 'P256' }))
    const tried = await Promise.all(Array.from({ length: 4 }, () => world.root.post(`${at(name)}/test/sign`)))
    for (const reply of tried) expect([204, 503]).toContain(reply.status)
    await done(world.root.post(`${at(name)}/test/sign`))
    await done(world.root.post(`transit/keys/${fresh('k')}`, { type: 'managed_key', managed_key_name: name }))
  })

  test('test/sign fails for a missing key, and for a key that does not sign', async () => {
    const none = await world.managed(world.settingsOf({ key_label: 'none' }))
    expectRefused(
      await world.root.post(`${at(none)}/test/sign`),
      400,
      `managed key "${none}": the token has no key with label "none", and allow_generate_key is not set`,
    )
    const aes = await world.managed(world.settingsOf({ key_label: 'aes', mechanism: '0x1087' }))
    expect((await world.root.post(`${at(aes)}/test/sign`)).status).toBe(400)
    const rsa = await world.managed(world.settingsOf({ key_label: 'rsa', mechanism: '0xd' }))
    for (const hash_algorithm of ['sha1', 'sha2-512', 'sha3-256']) {
      expect((await world.root.post(`${at(rsa)}/test/sign`, { use_pss: true, hash_algorithm })).status).toBe(204)
    }
    expect((await world.root.post(`${at(rsa)}/test/sign`, { hash_algorithm: 'md5' })).status).toBe(400)
    expect((await world.root.post(`${at('absent')}/test/sign`)).status).toBe(404)
  })

  test.each([
    [{ library: undefined }, 'library is required'],
    [
      { library: 'nowhere' },
      'library "nowhere" is not in the server\'s configuration (pkcs11Libraries has same, other)',
    ],
    [{ token_label: undefined }, 'one of slot and token_label is required'],
    [{ key_label: undefined }, 'one of key_label and key_id is required'],
    [{ mechanism: undefined }, 'mechanism is required'],
    [{ mechanism: 'CKM_RSA' }, 'mechanism must be the number of a PKCS#11 mechanism, in hexadecimal with 0x before it'],
    [{ pin: undefined }, 'pin is required'],
    [{ slot: 'one' }, 'slot must be a decimal number'],
    [{ curve: 'P192' }, 'curve must be one of P256, P384, P521'],
    [{ key_bits: 1024 }, 'key_bits must be one of 2048, 3072, 4096'],
    [{ key_id: 'xyz' }, 'key_id must be a CKA_ID in hexadecimal'],
    [{ usages: 'sign,steal' }, 'usages: steal is not one of encrypt, decrypt, sign, verify, wrap, unwrap, mac, random'],
    [{ allow_generate_key: true }, 'allow_generate_key with CKM_ECDSA needs curve'],
    [
      { allow_generate_key: true, mechanism: '0x1087' },
      'keys for CKM_AES_GCM are never generated: leave allow_generate_key out',
    ],
    [{ max_parallel: 0 }, 'max_parallel must be 1 or more'],
  ])('%j is refused by name', async (change, text) => {
    expectRefused(await world.root.post(at(fresh('mk')), world.settingsOf(change)), 400, text)
  })

  test('a mechanism that is not served is refused with the list of those that are', async () => {
    const refused = await world.root.post(at(fresh('mk')), world.settingsOf({ mechanism: '0x251' }))
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('there are 0x0001 CKM_RSA_PKCS')])
  })

  test('kinds of other clouds are refused with an explanation', async () => {
    for (const type of ['awskms', 'azurekeyvault', 'gcpckms']) {
      const refused = await world.root.post(`sys/managed-keys/${type}/x`, {})
      expectRefused(refused, 400, `managed keys of type ${type} are not available: there is pkcs11`)
    }
  })

  test('a token that is not there is 503; a key id that is not there is 400', async () => {
    const away = await world.root.post(at(fresh('mk')), world.settingsOf({ token_label: 'nothing' }))
    expectRefused(away, 503, 'the token "nothing" of library same is not available')
    const absent = await world.root.post(at(fresh('mk')), world.settingsOf({ key_id: 'ff' }))
    expectRefused(absent, 400, 'the token has no key with id ff')
  })
})
