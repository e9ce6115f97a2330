import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashes } from '../../src/crypto/hashes.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { KekStatus } from '../../src/keys/cluster/rotation.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { componentCheckValue } from '../../src/keys/kek/components.ts'
import type { Material } from '../../src/keys/material.ts'
import { type KekPurpose, kekPurposes } from '../../src/keys/tables.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { makeKey, none, openCluster, openHsm, Place, reopen, undisturbed } from './support.ts'

let hsm: Hsm

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('rotation'))
}, 60_000)

afterAll(() => hsm[Symbol.asyncDispose]())

const sha256 = hashes.get('sha2-256')
const scheme = { hash: sha256, prehashed: false, padding: 'pss', saltLength: 'auto', marshaling: 'asn1' } as const

/** One round of the job, as run by the holder of its lease. */
async function round(custody: Custody, place: Place, signal = none): Promise<void> {
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  if (lease === undefined) throw new Error('somebody else has the lease')
  await custody.rotation.advance(signal, lease.fence)
  await lease.release()
}

async function byState(custody: Custody, purpose: KekPurpose): Promise<Record<string, KekStatus>> {
  const all = await custody.rotation.status()
  return Object.fromEntries(all.filter((kek) => kek.purpose === purpose).map((kek) => [kek.state, kek]))
}

describe('KEK rotation', () => {
  it('keeps every answer good before, during and after, for every purpose, and destroys the old KEKs in the end', async () => {
    await using place = await Place.fresh()
    await using elsewhere = await Place.at(place.url)
    const custody = await openCluster(hsm, place)
    const other = await reopen(hsm, elsewhere)
    const keys = await Promise.all(
      ['aes256-gcm96', 'ecdsa-p256', 'rsa-2048', 'ed25519', 'hmac', 'chacha20-poly1305'].flatMap((algorithm) => [
        makeKey(custody, place.database, algorithm),
        makeKey(custody, place.database, algorithm, { exportable: true }),
      ]),
    )
    const before = await Promise.all(keys.map((key) => use(custody, key)))
    for (const purpose of kekPurposes) await custody.rotation.announce(purpose)
    await round(custody, place)
    const { pending } = await byState(custody, 'use')
    expect(pending?.unproven).toHaveLength(2)

    await custody.rotation.prove()
    await round(custody, place)
    const waiting = await byState(custody, 'use')
    expect(waiting.pending?.unproven).toEqual([elsewhere.database.incarnation])

    await other.rotation.prove()
    await round(custody, place)
    for (const purpose of kekPurposes) {
      const { active, retiring } = await byState(custody, purpose)
      expect([active?.keys, (retiring?.keys ?? 0) > 0]).toEqual([0, true])
    }
    await round(custody, place)
    for (const one of [custody, other]) {
      for (const [index, key] of keys.entries()) await check(one, key, before[index])
    }
    for (const purpose of kekPurposes) {
      const { retiring } = await byState(custody, purpose)
      expect(retiring?.keys).toBe(0)
      await custody.rotation.destroy(retiring?.id ?? '', 0)
    }
    for (const one of [custody, other]) {
      for (const key of keys) one.objects.handles.drop(key.id)
      for (const [index, key] of keys.entries()) await check(one, key, before[index])
    }
    other.close()
    custody.close()
    await using last = await Place.at(place.url)
    const reopened = await reopen(hsm, last)
    for (const [index, key] of keys.entries()) await check(reopened, key, before[index])
    reopened.close()
  }, 60_000)

  it('takes what keys are derived from along', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const part = { algorithm: 'aes256-gcm96', exportable: false, part: 'key', derived: true, createdBy: 'me' } as const
    const owner = { mount: '', key: randomUUID(), version: 1 }
    const draft = await custody.materials.extract(await custody.materials.prepare(part), 'hkdf_sha256')
    const { id } = await place.database.transaction((tx) => custody.materials.insert(tx, draft, owner))
    const source = { prk: await custody.materials.fetch(id), kdf: 'hkdf_sha256' } as const
    const point = () => custody.operations.derived.publicKey(source, Buffer.from('context'))
    const before = await point()
    await custody.rotation.announce('use')
    for (let rounds = 0; rounds < 3; rounds++) {
      await custody.rotation.prove()
      await round(custody, place)
    }
    const { retiring } = await byState(custody, 'use')
    await custody.rotation.destroy(retiring?.id ?? '', 0)
    custody.objects.handles.drop(id)
    expect(await point()).toEqual(before)
    custody.close()
  })

  it('is taken up where it was interrupted', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const keys: Material[] = []
    for (let count = 0; count < 120; count += 1) keys.push(await makeKey(custody, place.database, 'aes128-gcm96'))
    const before = await Promise.all(keys.map((key) => use(custody, key)))
    await custody.rotation.announce('use')
    await round(custody, place)
    await custody.rotation.prove()
    await round(custody, place)
    const left: number[] = []
    for (let keysLeft = 120; keysLeft > 0; ) {
      const interruption = new AbortController()
      let looked = 0
      const cut = {
        get aborted() {
          looked += 1
          return looked > 1
        },
      } as AbortSignal
      await round(custody, place, cut)
      keysLeft = (await byState(custody, 'use')).retiring?.keys ?? 0
      left.push(keysLeft)
      interruption.abort()
      const middle = keys.length >> 1
      for (const index of [0, middle, keys.length - 1]) {
        const key = keys[index]
        if (key === undefined) throw new Error('lost')
        custody.objects.handles.drop(key.id)
        await check(custody, key, before[index])
      }
    }
    expect(left).toEqual([70, 20, 0])
    for (const [index, key] of keys.entries()) await check(custody, key, before[index])
    custody.close()
  }, 60_000)

  it('a second announcement, a KEK in use and one still active are refused', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    await makeKey(custody, place.database, 'aes256-gcm96')
    const announcements = await Promise.allSettled([custody.rotation.announce('use'), custody.rotation.announce('use')])
    expect(announcements.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await expect(custody.rotation.announce('use')).rejects.toThrow('under way')
    const { active } = await byState(custody, 'use')
    await expect(custody.rotation.destroy(active?.id ?? '', 0)).rejects.toThrow('not retiring')
    await round(custody, place)
    await custody.rotation.prove()
    await round(custody, place)
    const { retiring } = await byState(custody, 'use')
    // Not even for a moment: while it is marked as destroyed nothing is rewrapped.
    const head = () => place.sql("SELECT * FROM heads WHERE `set` = 'keks'")
    const before = await head()
    await expect(custody.rotation.destroy(retiring?.id ?? '')).rejects.toThrow('1 keys are still under')
    expect(await head()).toEqual(before)
    expect((await byState(custody, 'use')).retiring?.id).toBe(retiring?.id)
    custody.close()
  })

  it('whose old KEK gets a key in the last moment does not destroy it', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { id } = await makeKey(custody, place.database, 'aes256-gcm96')
    await custody.rotation.announce('use')
    await round(custody, place)
    await custody.rotation.prove()
    await round(custody, place)
    await round(custody, place)
    const old = (await byState(custody, 'use')).retiring?.id ?? ''
    const destroyed = expect(custody.rotation.destroy(old, 2000)).rejects.toThrow('1 keys are still under')
    const marked = async () => (await byState(custody, 'use')).destroyed !== undefined
    while (!(await marked()));
    await place.sql(`UPDATE materials SET kek = '${old}' WHERE id = '${id}'`)
    await destroyed
    expect((await byState(custody, 'use')).retiring).toMatchObject({ id: old, here: true, keys: 1 })
    custody.close()
  })

  it('that cannot be finished is given up, and another one is announced', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { id } = await custody.rotation.announce('use', 'components')
    expect(await custody.rotation.destroy(id, 0)).toEqual({ dumpsUsableSince: undefined })
    const generated = await custody.rotation.announce('use')
    await round(custody, place)
    const made = (await byState(custody, 'use')).pending
    expect([made?.id, made?.here]).toEqual([generated.id, true])
    expect(await custody.rotation.destroy(generated.id, 0)).toEqual({ dumpsUsableSince: undefined })
    await custody.rotation.prove()
    await round(custody, place)
    const use = (await custody.rotation.status()).filter(({ purpose }) => purpose === 'use')
    expect(use.map(({ state, here }) => [state, here]).toSorted()).toEqual([
      ['abandoned', false],
      ['abandoned', false],
      ['active', true],
    ])
    await makeKey(custody, place.database, 'aes256-gcm96')
    custody.close()
  })

  it('of all KEKs is announced whole or not at all, and leaves out those under way', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const states = async () =>
      (await custody.rotation.status()).filter(({ state }) => state === 'pending').map(({ purpose }) => purpose)
    await place.sql(`CREATE TRIGGER refusing BEFORE INSERT ON keks FOR EACH ROW BEGIN
      IF NEW.purpose = '${kekPurposes.at(-1)}' THEN SIGNAL SQLSTATE '45000'; END IF; END`)
    await expect(custody.rotation.announceAll()).rejects.toThrow()
    await place.sql('DROP TRIGGER refusing')
    expect(await states()).toEqual([])
    await custody.rotation.announce('use', 'components')
    expect((await custody.rotation.announceAll()).map(({ purpose }) => purpose)).toEqual(
      kekPurposes.filter((purpose) => purpose !== 'use'),
    )
    expect((await states()).sort()).toEqual([...kekPurposes].sort())
    await expect(custody.rotation.announceAll()).rejects.toMatchObject({ status: 400 })
    custody.close()
  })

  it('a key that was made under the old KEK is stored while it retires, and not once it is destroyed', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const prepare = () =>
      custody.materials.prepare({ algorithm: 'aes256-gcm96', exportable: false, part: 'key', createdBy: 'me' })
    const drafts = [await prepare(), await prepare()]
    await custody.rotation.announce('use')
    await round(custody, place)
    await custody.rotation.prove()
    await round(custody, place)
    const store = (index: number) =>
      place.database.transaction((tx) => {
        const draft = drafts[index]
        if (draft === undefined) throw new Error('lost')
        return custody.materials.insert(tx, draft, { mount: '', key: randomUUID(), version: 1 })
      })
    const stored = await store(0)
    await round(custody, place)
    const { retiring } = await byState(custody, 'use')
    await custody.rotation.destroy(retiring?.id ?? '', 0)
    await expect(store(1)).rejects.toMatchObject({ status: 503 })
    await use(custody, await custody.materials.fetch(stored.id))
    custody.close()
  })

  it('a key that was made exportable under the old KEK stays as it was once that is destroyed', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { makeExportable } = custody.transfer
    const material = await makeKey(custody, place.database, 'aes256-gcm96')
    const releases = await makeExportable.prepare([material.row])
    await custody.rotation.announce('export')
    await round(custody, place)
    await custody.rotation.prove()
    await round(custody, place)
    const { retiring } = await byState(custody, 'export')
    await custody.rotation.destroy(retiring?.id ?? '', 0)
    const apply = place.database.transaction((tx) => makeExportable.apply(tx, releases))
    await expect(apply).rejects.toMatchObject({ status: 503 })
    custody.objects.handles.drop(material.id)
    await use(custody, await custody.materials.fetch(material.id))
    custody.close()
  })

  it('by components waits for the custodians', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const { id } = await custody.rotation.announce('export', 'components')
    await round(custody, place)
    expect((await byState(custody, 'export')).pending?.checkValue).toBe('')
    const component = (byte: number) => ({
      bytes: Buffer.alloc(32, byte),
      checkValue: componentCheckValue(Buffer.alloc(32, byte)),
    })
    await custody.rotation.adopt(id, [component(3), component(5)], undisturbed)
    expect((await byState(custody, 'export')).pending?.checkValue).toBe(
      componentCheckValue(Buffer.alloc(32, 6)).toString('hex'),
    )
    await custody.rotation.prove()
    await round(custody, place)
    expect((await byState(custody, 'export')).active?.id).toBe(id)
    await use(custody, await makeKey(custody, place.database, 'aes256-gcm96', { exportable: true }))
    custody.close()
  })

  it('a job that lost its lease changes nothing', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    await custody.rotation.announce('use')
    await expect(custody.rotation.advance(none, 77n)).rejects.toThrow('taken over')
    expect((await byState(custody, 'use')).pending?.checkValue).toBe('')
    custody.close()
  })
})

type Use = { iv: Uint8Array; sealed: Buffer } | { mac: Buffer } | { signed: true }

async function use(custody: Custody, key: Material): Promise<Use> {
  const { kind } = key.algorithm
  if (kind === 'aead') return custody.operations.cipher.encrypt(key, { plaintext: Buffer.from('plain') })
  if (sha256 === undefined) throw new Error('no sha2-256')
  if (kind === 'hmac') return { mac: await custody.operations.hmacs.mac(key, sha256, Buffer.from('input')) }
  await custody.operations.signer.sign(key, Buffer.from('input'), scheme)
  return { signed: true }
}

async function check(custody: Custody, key: Material, before: Use | undefined): Promise<void> {
  const material = await custody.materials.fetch(key.id)
  if (before === undefined) throw new Error('nothing to compare')
  if ('iv' in before) expect((await custody.operations.cipher.decrypt(material, before)).toString()).toBe('plain')
  else if ('mac' in before) expect(await use(custody, material)).toEqual(before)
  else {
    const { verify } = await import('../../src/keys/use/verify.ts')
    const signature = await custody.operations.signer.sign(material, Buffer.from('input'), scheme)
    expect(verify(key, Buffer.from('input'), signature, scheme)).toBe(true)
  }
}
