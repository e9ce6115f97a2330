import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { hashes, hashOf } from '../../src/crypto/hashes.ts'
import { CKK } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Scheme } from '../../src/keys/algorithms/signature.ts'
import { Custody } from '../../src/keys/custody.ts'
import { materialsTable } from '../../src/keys/tables.ts'
import { verify } from '../../src/keys/use/verify.ts'
import { clock, makeKey, nobody, none, openCluster, options, Place, useCluster } from './support.ts'

let hsm: Hsm
let place: Place
let custody: Custody

useCluster(
  'strict',
  (made) => {
    ;({ hsm, place, custody } = made)
  },
  { strict: true },
)

const ed25519 = { algorithm: 'ed25519', exportable: false } as const

const scheme: Scheme = {
  hash: hashes.get('sha2-256'),
  prehashed: false,
  padding: 'pss',
  saltLength: 'auto',
  marshaling: 'asn1',
}

describe('strict mode', () => {
  it.each(['aes256-gcm96', 'ecdsa-p256', 'hmac'])(
    'the token itself lets no %s key out of its blob',
    async (algorithm) => {
      const { row, algorithm: facts } = await makeKey(custody, place.database, algorithm)
      expect(row.residence).toBe('wrapped')
      const [kekRow] = await place.sql('SELECT cka_id FROM keks WHERE id = ?', [row.kek])
      const [kek] = await hsm.find({ class: 'secret', id: kekRow?.cka_id, token: true })
      if (kek === undefined || row.blob === null) throw new Error('no KEK')
      const { blob } = row
      for (const keyType of [facts.keyType, CKK.GENERIC_SECRET]) {
        const steal = async () =>
          hsm.unwrap(kek, hsm.capabilities.kwp, blob, {
            class: 'secret',
            keyType,
            extractable: true,
            sensitive: false,
            usages: [],
          })
        await expect(steal()).rejects.toThrow()
      }
    },
  )

  it('encrypts, signs and MACs with what the token can keep', async () => {
    const cipher = await makeKey(custody, place.database, 'aes256-gcm96')
    const sealed = await custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('hello') })
    expect((await custody.operations.cipher.decrypt(cipher, sealed)).toString()).toBe('hello')
    for (const algorithm of ['ecdsa-p384', 'rsa-2048']) {
      const key = await makeKey(custody, place.database, algorithm)
      expect(
        verify(key, Buffer.from('x'), await custody.operations.signer.sign(key, Buffer.from('x'), scheme), scheme),
      ).toBe(true)
    }
  })

  it('names the mechanism for what the token cannot compute', async () => {
    await expect(makeKey(custody, place.database, 'chacha20-poly1305')).rejects.toThrow(
      'strict mode: the HSM lacks CKM_CHACHA20_POLY1305',
    )
    const secret = await makeKey(custody, place.database, 'hmac')
    const { hmacs } = custody.operations
    const opened = (hash: string) => hmacs.macOpened(secret, hashOf(hash), Buffer.from('x'), nobody)
    await expect(opened('sha3-256')).rejects.toThrow('strict mode: the HSM lacks CKM_SHA3_256_HMAC')
    await expect(opened('sha2-512')).rejects.toThrow(
      'strict mode: CKM_SHA512_HMAC in the HSM takes secrets of 64 bytes or more, and that of version 1 has 32: key_size 64 serves every SHA-2',
    )
    expect((await custody.materials.fetch(secret.id)).row).toEqual(secret.row)
    for (const derived of ['aes256-gcm96', 'ed25519']) {
      await expect(makeKey(custody, place.database, derived, { derived: true })).rejects.toThrow(
        "strict mode: derived keys would be in the server's memory, since the HSM lacks CKM_HKDF_DERIVE with info",
      )
    }
    await expect(makeKey(custody, place.database, 'hmac', { sizeBytes: 65 })).rejects.toThrow('multiples of 8 bytes')
    await expect(makeKey(custody, place.database, 'hmac', { sizeBytes: 31 })).rejects.toThrow(
      'strict mode: CKM_SHA256_HMAC in the HSM takes secrets of 32 bytes or more, asked for 31',
    )
    await expect(makeKey(custody, place.database, 'ed25519', { exportable: true })).rejects.toThrow(
      'cannot be exported',
    )
  })

  it('keeps Ed25519 keys as token objects, the most that are allowed, and destroys them with their rows', async () => {
    const residents = async () => (await hsm.find({ class: 'private', token: true })).length
    const keys = [randomUUID(), randomUUID(), randomUUID()]
    for (const key of keys) {
      const material = await makeKey(custody, place.database, 'ed25519', {}, { key })
      expect(material.row).toMatchObject({
        residence: 'token',
        neverExtractable: true,
        alwaysSensitive: true,
        local: true,
        blob: null,
      })
      const signature = await custody.operations.signer.sign(material, Buffer.from('x'), scheme)
      expect(verify(material, Buffer.from('x'), signature, scheme)).toBe(true)
    }
    await expect(makeKey(custody, place.database, 'ed25519')).rejects.toThrow('the most that are allowed')
    expect(await residents()).toBe(3)
    await place.database.transaction((tx) => custody.materials.removeOwned(tx, { key: keys[0] ?? '' }))
    expect(await residents()).toBe(3)
    expect(await custody.objects.residents.sweep()).toBe(1)
    expect(await residents()).toBe(2)
    expect(await custody.objects.residents.sweep()).toBe(0)
    await makeKey(custody, place.database, 'ed25519')
  })

  it('a token object whose key was never stored is swept after an hour, and its draft is void then', async () => {
    await place.database.transaction((tx) => custody.materials.removeOwned(tx, { key: '' }))
    for (const row of await place.sql("SELECT owner FROM materials WHERE residence = 'token' AND state = 'active'")) {
      await place.database.transaction((tx) => custody.materials.removeOwned(tx, { key: row.owner }))
    }
    await custody.objects.residents.sweep()
    let ahead = 0
    const later = { wall: () => Date.now() + ahead, monotonic: () => performance.now(), sleep: async () => {} }
    const worker = await Custody.open(options(hsm, place.database, { strict: true, clock: later }))
    const draft = await worker.materials.prepare({
      algorithm: 'ed25519',
      exportable: false,
      part: 'key',
      createdBy: 'me',
    })
    expect(await worker.objects.residents.sweep()).toBe(0)
    ahead = 3_700_000
    expect(await worker.objects.residents.sweep()).toBe(1)
    expect(await hsm.find({ class: 'private', token: true })).toEqual([])
    const store = place.database.transaction((tx) =>
      worker.materials.insert(tx, draft, { mount: '', key: randomUUID(), version: 1 }),
    )
    await expect(store).rejects.toThrow('took too long')
    worker.close()
  })

  it('markers of a program before migration 8, which lie among the materials, are swept as well', async () => {
    const roomy = await Custody.open(options(hsm, place.database, { strict: true, residentLimit: 100 }))
    const draft = await roomy.materials.prepare({ ...ed25519, part: 'key', createdBy: 'me' })
    const [meant] = await place.sql("SELECT material, cka_id FROM intents WHERE state = 'intent'")
    await place.sql("DELETE FROM intents WHERE state = 'intent'")
    await place.database.transaction((tx) =>
      place.database.table(materialsTable).insert(tx, {
        ...draft.fields,
        ...{ id: randomUUID(), owner: meant?.material, version: 0, ckaId: meant?.cka_id, publicKey: null },
        ...{ fingerprint: null, state: 'intent' },
      }),
    )
    const found = () => hsm.find({ class: 'private', id: meant?.cka_id, token: true })
    expect(await custody.objects.residents.sweep()).toBe(0)
    expect(await found()).toHaveLength(1)
    const later = { ...clock, wall: () => clock.wall() + 3_700_000 }
    const worker = await Custody.open(options(hsm, place.database, { strict: true, clock: later }))
    expect(await worker.objects.residents.sweep()).toBe(1)
    worker.close()
    expect(await found()).toEqual([])
    expect(await place.sql("SELECT id FROM materials WHERE residence = 'token' AND state <> 'active'")).toEqual([])
  })

  it('rotation of the use KEK covers new versions only', async () => {
    const old = await makeKey(custody, place.database, 'aes256-gcm96')
    const sealed = await custody.operations.cipher.encrypt(old, { plaintext: Buffer.from('hello') })
    await custody.rotation.announce('use')
    const lease = await place.database.jobLease(custody.rotation.job.name, 30)
    if (lease === undefined) throw new Error('no lease')
    await custody.rotation.advance(none, lease.fence)
    await custody.rotation.prove()
    for (let count = 0; count < 3; count += 1) await custody.rotation.advance(none, lease.fence)
    const fresh = await makeKey(custody, place.database, 'aes256-gcm96')
    expect(fresh.row.kek).not.toBe(old.row.kek)
    expect((await custody.rotation.status()).find(({ id }) => id === old.row.kek)).toMatchObject({ state: 'retiring' })
    custody.objects.handles.drop(old.id)
    expect((await custody.operations.cipher.decrypt(await custody.materials.fetch(old.id), sealed)).toString()).toBe(
      'hello',
    )
  })

  it('decides at creation whether a key may be exported', async () => {
    const { row } = await makeKey(custody, place.database, 'aes256-gcm96')
    await expect(custody.transfer.makeExportable.prepare([row])).rejects.toThrow('decided when it is created')
  })

  it('is refused on a cluster that was made without it', async () => {
    await using lax = await Place.fresh()
    ;(await openCluster(hsm, lax)).close()
    await expect(Custody.open(options(hsm, lax.database, { strict: true }))).rejects.toThrow('made outside strict mode')
  })
})
