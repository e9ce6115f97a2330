import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashes, hashOf } from '../../src/crypto/hashes.ts'
import { CKK } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { bootstrapMac } from '../../src/keys/cluster/bootstrap.ts'
import { Custody } from '../../src/keys/custody.ts'
import { clusterState, initialise } from '../../src/keys/initialise.ts'
import { Keks } from '../../src/keys/kek/keks.ts'
import { Blobs } from '../../src/keys/live/blobs.ts'
import { withSecret, wrapSecret } from '../../src/keys/making/secret.ts'
import { clusterTable, keksTable, systemKeysTable } from '../../src/keys/tables.ts'
import { Cipher } from '../../src/keys/use/cipher.ts'
import { Usage } from '../../src/keys/use/usage.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { Shape } from '../../src/store/sealed/shape.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { initialising, makeKey, nobody, openCluster, openHsm, options, Place, reopen } from './support.ts'

let hsm: Hsm

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('custody'))
}, 60_000)

afterAll(() => hsm[Symbol.asyncDispose]())

const sha256 = hashes.get('sha2-256')

describe('the database’s owner', () => {
  it('cannot move a wrapped blob to another key', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const mine = await makeKey(custody, place.database, 'aes256-gcm96')
    const yours = await makeKey(custody, place.database, 'aes256-gcm96')
    await place.sql('UPDATE materials a, materials b SET a.`blob` = b.`blob` WHERE a.id = ? AND b.id = ?', [
      mine.id,
      yours.id,
    ])
    await using elsewhere = await Place.at(place.url)
    const fresh = await reopen(hsm, elsewhere)
    await expect((async () => fresh.materials.fetch(mine.id))()).rejects.toBeInstanceOf(DamagedRow)
    await expect((async () => fresh.materials.fetch(yours.id))()).resolves.toBeDefined()
    fresh.close()
    custody.close()
  })

  it.each([
    ['exportable', 'UPDATE materials SET exportable = 1'],
    ['history', 'UPDATE materials SET ever_plaintext = 1 - ever_plaintext'],
    ['mount', "UPDATE materials SET mount = '7dfc7d5b-5b0c-4d5e-9a0e-6a0b8f1f2c33'"],
    ['version', 'UPDATE materials SET version = 2'],
  ])('cannot edit %s of a material', async (_, statement) => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { id } = await makeKey(custody, place.database, 'aes256-gcm96')
    await place.sql(statement)
    await using elsewhere = await Place.at(place.url)
    const fresh = await reopen(hsm, elsewhere)
    await expect((async () => fresh.materials.fetch(id))()).rejects.toBeInstanceOf(DamagedRow)
    fresh.close()
    custody.close()
  })

  it('cannot put a known key in the place of the row-MAC key', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const keks = new Keks(hsm, place.database, false)
    const known = Buffer.alloc(32, 7)
    const secrets = Object.fromEntries(
      await Promise.all(
        (['use', 'open', 'export'] as const).map(async (purpose) => {
          const kek = await keks.active(purpose)
          return [purpose, { kek: kek.row.id, blob: await wrapSecret(hsm, kek, known) }] as const
        }),
      ),
    )
    custody.close()
    const key = await hsm.create({ class: 'secret', keyType: CKK.GENERIC_SECRET, value: known, usages: ['sign'] })
    const checkValue = await hsm.sign(key, { type: 0x251 }, Buffer.from('strongroom/check-value/1'), 32)
    const { use } = secrets
    if (use === undefined) throw new Error('no blob')

    // The blob alone: it is not under the system KEK.
    const [before] = await place.sql("SELECT `blob`, kek, check_value FROM system_keys WHERE purpose = 'rows'")
    await place.sql("UPDATE system_keys SET `blob` = ? WHERE purpose = 'rows'", [use.blob])
    await expect(open(place)).rejects.toThrow()
    // With its KEK, which is not a system KEK.
    await place.sql("UPDATE system_keys SET `blob` = ?, kek = ? WHERE purpose = 'rows'", [use.blob, use.kek])
    await expect(open(place)).rejects.toThrow('not under a system KEK')
    // With that KEK's row called a system KEK, and the right check value: every row could now be forged, but for the
    // KEK's label in the token.
    await place.sql("UPDATE keks SET purpose = 'system' WHERE id = ?", [use.kek])
    await place.sql("UPDATE system_keys SET check_value = ? WHERE purpose = 'rows'", [checkValue])
    await expect(open(place)).rejects.toThrow()
    await forgeEverything(place, known)
    await expect(open(place)).rejects.toThrow('not what a KEK must be: label')
    await expect(open(place, { acceptRestore: true })).rejects.toThrow('not what a KEK must be: label')
    expect(before).toBeDefined()
  })

  it('cannot swap the system keys among themselves', async () => {
    await using place = await Place.fresh()
    ;(await openCluster(hsm, place)).close()
    await place.sql(`UPDATE system_keys a, system_keys b SET a.\`blob\` = b.\`blob\`, a.check_value = b.check_value
      WHERE a.purpose = 'rows' AND b.purpose = 'tokens'`)
    await expect(open(place)).rejects.toThrow()
    await place.sql(
      "UPDATE system_keys SET purpose = IF(purpose = 'rows', 'tokens', IF(purpose = 'tokens', 'rows', purpose))",
    )
    await expect(open(place)).rejects.toThrow()
  })

  it('cannot use a blob of one purpose as another: a KEK opens its own only', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const keks = new Keks(hsm, place.database, false)
    const [use, openKek] = [await keks.active('use'), await keks.active('open')]
    const blob = await wrapSecret(hsm, use, Buffer.alloc(32, 1))
    await expect(withSecret(hsm, openKek, blob, () => 'opened')).rejects.toThrow()
    await expect(withSecret(hsm, use, blob, () => 'opened')).rejects.toThrow('never opened')
    custody.close()
  })

  it('cannot delete the settings row to have the cluster begun again', async () => {
    await using place = await Place.fresh()
    ;(await openCluster(hsm, place)).close()
    await place.sql('DELETE FROM cluster')
    await expect(open(place)).rejects.toThrow('settings row')
    await expect(initialise(initialising(hsm, place.database))).rejects.toThrow('settings row')
    await place.sql('DELETE FROM system_keys')
    await using again = await Place.at(place.url)
    await expect(initialise(initialising(hsm, again.database))).rejects.toThrow('settings row')
  })

  it('cannot make a ready cluster look begun, so that its KEKs are destroyed', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { id } = custody.cluster
    custody.close()
    await place.sql('DELETE FROM cluster')
    await using blank = await Place.fresh()
    // An intent of the attacker's own making, for the cluster that lives in the token.
    blank.database.useMac(bootstrapMac)
    blank.database.setEpoch(1)
    await blank.database.transaction((tx) =>
      blank.database.table(clusterTable).insert(tx, { id, name: 'test', state: 'initialising', createdAt: 1 }),
    )
    await expect(initialise(initialising(hsm, blank.database))).rejects.toThrow('the token remembers cluster')
  })

  it('cannot go back behind the anchor', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const head = place.database.head('policies')
    await place.database.transaction((tx) => head.create(tx))
    const old = await place.sql("SELECT * FROM heads WHERE `set` = 'policies'")
    await place.database.transaction((tx) => head.advance(tx, [{ id: randomUUID(), rev: 1 }]))
    await custody.cluster.anchor()
    await place.sql(
      "UPDATE heads SET ? WHERE `set` = 'policies'".replace('?', '`count` = ?, digest = ?, seq = ?, mac = ?, rev = ?'),
      [old[0]?.count, old[0]?.digest, old[0]?.seq, old[0]?.mac, old[0]?.rev],
    )
    await expect(custody.cluster.anchor()).rejects.toThrow('gone back behind')
    custody.close()
    await expect(open(place)).rejects.toThrow('the set policies is at change 0, the token remembers 1')
    const accepted = await Custody.open(options(hsm, place.database, { acceptRestore: true }))
    expect(accepted.cluster.epoch).toBe(2)
    accepted.close()
    const next = await Custody.open(options(hsm, place.database))
    expect(next.cluster.epoch).toBe(2)
    next.close()
  })

  it('finds no canary: no secret that passed through memory is in any column', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const keks = new Keks(hsm, place.database, false)
    const { hmacs } = custody.operations
    const canaries: Buffer[] = []
    for (const algorithm of ['hmac', 'ed25519', 'chacha20-poly1305']) {
      const made = await makeKey(custody, place.database, algorithm)
      // A secret that no HMAC has opened was never in memory.
      if (algorithm === 'hmac') await hmacs.macOpened(made, hashOf('sha3-256'), Buffer.from('x'), nobody)
      const { row } = await custody.materials.fetch(made.id)
      if (row.kek === null || row.blob === null) throw new Error('no blob')
      await withSecret(hsm, await keks.get(row.kek), row.blob, (secret) =>
        canaries.push(Buffer.from(secret.subarray(0, 32))),
      )
    }
    const exported = await makeKey(custody, place.database, 'aes256-gcm96', { exportable: true })
    const { iv, sealed } = await custody.operations.cipher.encrypt(exported, {
      plaintext: Buffer.from('canary plaintext'),
    })
    expect(sealed.length + iv.length).toBe(44)
    canaries.push(Buffer.from('canary plaintext'))
    const tables = await place.sql('SHOW TABLES')
    let scanned = 0
    for (const table of tables.flatMap((row) => Object.values(row))) {
      for (const row of await place.sql(`SELECT * FROM \`${table}\``)) {
        for (const value of Object.values(row)) {
          scanned += 1
          const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value))
          for (const canary of canaries) {
            for (const form of [canary, Buffer.from(canary.toString('hex')), Buffer.from(canary.toString('base64'))]) {
              expect(bytes.includes(form)).toBe(false)
            }
          }
        }
      }
    }
    expect(scanned).toBeGreaterThan(500)
    custody.close()
  })
})

describe('custody', () => {
  it('gives three keys that are all different, and the same in every process', async () => {
    await using place = await Place.fresh()
    const [one, two] = [await openCluster(hsm, place), await Custody.open(options(hsm, place.database))]
    const message = Buffer.from('message')
    const macs = await Promise.all([one.macs.rowMac.compute(message), one.macs.tokenMac(message)])
    const [rows, tokens] = macs
    expect(rows.equals(tokens)).toBe(false)
    expect((await two.macs.tokenMac(message)).equals(tokens)).toBe(true)
    expect(two.macs.audit.device('a').equals(one.macs.audit.device('a'))).toBe(true)
    expect(two.macs.audit.device('a').equals(two.macs.audit.device('b'))).toBe(false)
    expect(two.macs.audit.guess.equals(one.macs.audit.guess)).toBe(true)
    expect(await two.macs.rowMac.verify(one.macs.rowMac.keyId, message, rows)).toBe(true)
    expect(await two.macs.rowMac.verify(one.macs.rowMac.keyId, message, tokens)).toBe(false)
    expect(two.macs.rowMac.knows(randomUUID())).toBe(false)
    one.close()
    two.close()
  })

  it('makes a key exportable inside the token: the blob goes from KEK to KEK, and every answer stays', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const keks = new Keks(hsm, place.database, false)
    const to = (await keks.active('export')).row.id
    for (const algorithm of ['aes256-gcm96', 'ecdsa-p256', 'ed25519', 'hmac']) {
      const { id, row } = await makeKey(custody, place.database, algorithm)
      const releases = await custody.transfer.makeExportable.prepare([row])
      await place.database.transaction((tx) => custody.transfer.makeExportable.apply(tx, releases))
      custody.objects.handles.drop(id)
      const material = await custody.materials.fetch(id)
      expect(material.row).toMatchObject({ exportable: true, kek: to, createdAt: row.createdAt })
      expect(await custody.transfer.makeExportable.prepare([material.row])).toEqual([])
      if (material.algorithm.kind !== 'aead') continue
      const sealed = await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('x') })
      expect((await custody.operations.cipher.decrypt(material, sealed)).toString()).toBe('x')
      await expect(
        place.database.transaction((tx) => custody.transfer.makeExportable.apply(tx, releases)),
      ).rejects.toThrow('changed')
    }
    custody.close()
  })

  it('removes what a key has and nothing else', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const [key, other] = [randomUUID(), randomUUID()]
    for (const version of [1, 2, 3]) {
      await makeKey(custody, place.database, 'aes256-gcm96', {}, { key, version })
      await makeKey(custody, place.database, 'hmac', { part: 'hmac' }, { key, version })
    }
    const kept = await makeKey(custody, place.database, 'aes256-gcm96', {}, { key: other })
    const remove = (what: { version?: number; below?: number }) =>
      place.database.transaction((tx) => custody.materials.removeOwned(tx, { key, ...what }))
    expect(await remove({ below: 2 })).toHaveLength(2)
    expect(await remove({ version: 2 })).toHaveLength(2)
    expect(await remove({})).toHaveLength(2)
    expect((await custody.materials.fetch(kept.id)).row.owner).toBe(other)
    expect(await place.sql('SELECT * FROM usage_counters')).toHaveLength(1)
    custody.close()
  })

  it('a key that was removed is not used again by anyone', async () => {
    await using place = await Place.fresh()
    await using elsewhere = await Place.at(place.url)
    const custody = await openCluster(hsm, place)
    const other = await reopen(hsm, elsewhere)
    const { id, row } = await makeKey(custody, place.database, 'aes256-gcm96')
    await other.materials.fetch(id)
    await place.database.transaction((tx) => custody.materials.removeOwned(tx, { key: row.owner }))
    await expect((async () => other.materials.fetch(id))()).rejects.toThrow('there is no material')
    other.close()
    custody.close()
  })

  it('counts encryptions ahead, over workers and crashes, never too few', async () => {
    await using place = await Place.fresh()
    await using elsewhere = await Place.at(place.url)
    const [custody] = [await openCluster(hsm, place)]
    const other = await reopen(hsm, elsewhere)
    const material = await makeKey(custody, place.database, 'aes256-gcm96')
    const used = async () => Number((await place.sql('SELECT used FROM usage_counters'))[0]?.used)
    for (let count = 0; count < 300; count += 1) {
      await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('x') })
      if (count % 3 === 0) await other.operations.cipher.encrypt(material, { plaintext: Buffer.from('x') })
      expect(await used()).toBeGreaterThan(count)
    }
    expect(await used()).toBe(256 + 512 + 256)
    custody.close()
    other.close()
  })

  it('warns from 2^31 encryptions, and strict mode refuses beyond 2^32', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const material = await makeKey(custody, place.database, 'aes256-gcm96')
    const keks = new Keks(hsm, place.database, false)
    const blobs = new Blobs(hsm, keks, async () => undefined)
    const overused = { value: 0 }
    const { handles } = custody.objects
    const cipher = (strict: boolean) =>
      new Cipher({ hsm, blobs, handles, strict, usage: new Usage(place.database, 10), overused })
    const encrypt = async (strict: boolean) => cipher(strict).encrypt(material, { plaintext: Buffer.from('x') })
    expect((await encrypt(false)).warning).toBeUndefined()
    await place.sql('UPDATE usage_counters SET used = 2147483648')
    expect((await encrypt(true)).warning).toContain('rotate the key')
    await place.sql('UPDATE usage_counters SET used = 4294967296')
    expect((await encrypt(false)).warning).toContain('rotate the key')
    await expect(encrypt(true)).rejects.toThrow('2^32 times')
    expect(overused.value).toBe(2)
    custody.close()
  })

  it('under the threads executor everything answers the same', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const material = await makeKey(custody, place.database, 'aes256-gcm96')
    const secret = await makeKey(custody, place.database, 'hmac')
    const { iv, sealed } = await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('hello') })
    if (sha256 === undefined) throw new Error('no sha2-256')
    const mac = await custody.operations.hmacs.mac(secret, sha256, Buffer.from('x'))
    custody.close()
    await using threaded = await openHsm({ ...(await tokenOf()), pin: hsm.credentials.pin }, 'threads')
    await using elsewhere = await Place.at(place.url)
    const other = await reopen(threaded, elsewhere, { handleLimit: 1 })
    const [cipher, key] = [await other.materials.fetch(material.id), await other.materials.fetch(secret.id)]
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) =>
        index % 2
          ? other.operations.cipher.decrypt(cipher, { iv, sealed })
          : other.operations.hmacs.mac(key, sha256, Buffer.from('x')),
      ),
    )
    for (const [index, answer] of answers.entries()) {
      expect(answer.equals(index % 2 ? Buffer.from('hello') : mac)).toBe(true)
    }
    other.close()
  })

  it('FIPS mode makes no key of a type that is not approved and signs no SHA-1', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place, { fips: true })
    for (const algorithm of ['ed25519', 'chacha20-poly1305']) {
      await expect(makeKey(custody, place.database, algorithm)).rejects.toThrow('FIPS mode')
    }
    const material = await makeKey(custody, place.database, 'ecdsa-p256')
    const scheme = { prehashed: false, padding: 'pss', saltLength: 'auto', marshaling: 'asn1' } as const
    const sign = async () =>
      custody.operations.signer.sign(material, Buffer.from('x'), { ...scheme, hash: hashes.get('sha1') })
    await expect(sign()).rejects.toThrow('FIPS mode: sha1')
    custody.close()
  })
})

it('a cluster named otherwise is refused', async () => {
  await using place = await Place.fresh()
  ;(await openCluster(hsm, place)).close()
  await expect(open(place, { name: 'production' })).rejects.toThrow('belongs to cluster test')
  expect(await clusterState(place.database)).toBe('ready')
})

async function open(place: Place, more: Parameters<typeof options>[2] = {}): Promise<void> {
  await using elsewhere = await Place.at(place.url)
  const custody = await Custody.open(options(hsm, elsewhere.database, more))
  custody.close()
}

async function tokenOf() {
  const { library, serial } = hsm.credentials
  return { library, serial, label: '', pin: '', soPin: '', directory: process.env.STRONGROOM_TEST_DIRECTORY ?? '' }
}

/** Seals every row of the three tables with a key that the attacker knows. */
async function forgeEverything(place: Place, key: Buffer): Promise<void> {
  const [rows] = await place.sql("SELECT id FROM system_keys WHERE purpose = 'rows'")
  for (const table of [clusterTable, keksTable, systemKeysTable]) {
    const shape = new Shape(table)
    const names = shape.fields.map(({ name }) => `\`${name}\``).join(', ')
    for (const row of await place.sql(`SELECT ${names} FROM ${table.name}`)) {
      const stored = Object.values(row)
      const mac = createHmac('sha256', key).update(shape.canonical(1, stored)).digest()
      await place.sql(`UPDATE ${table.name} SET mac = ?, mac_key_id = ? WHERE id = ?`, [mac, rows?.id, row.id])
    }
  }
}
