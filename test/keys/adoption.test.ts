import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it, test } from 'vitest'
import { policyTable } from '../../src/auth/policytable.ts'
import { keysUnder } from '../../src/ceremony/lonekeys.ts'
import { sealedTables } from '../../src/ceremony/sealedtables.ts'
import { hashes } from '../../src/crypto/hashes.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { type AdoptionPlan, adoptCluster, planAdoption } from '../../src/keys/cluster/adoption.ts'
import { readAnchor } from '../../src/keys/cluster/anchor.ts'
import type { KekStatus } from '../../src/keys/cluster/rotation.ts'
import { makeSystemKey } from '../../src/keys/cluster/system.ts'
import { verifyRows } from '../../src/keys/cluster/verification.ts'
import { Custody } from '../../src/keys/custody.ts'
import { type Ceremony, initialise } from '../../src/keys/initialise.ts'
import { clusterOf } from '../../src/keys/kek/identity.ts'
import { makeKek } from '../../src/keys/kek/kek.ts'
import { Keks } from '../../src/keys/kek/keks.ts'
import { type KekPurpose, kekPurposes } from '../../src/keys/tables.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { custodians } from './custodians.ts'
import { initialising, makeKey, none, openHsm, options, Place, reopen, undisturbed } from './support.ts'

let first: TestToken
let second: TestToken

beforeAll(async () => {
  // A module sees only the tokens that exist when it is initialised.
  first = await createTestedToken('first')
  second = await createToken('second')
}, 60_000)

/** Initialises a cluster on a token and hands it to `work`; the token then counts as gone. */
async function living<T>(
  place: Place,
  strict: boolean,
  work: (custody: Custody, hsm: Hsm) => Promise<T>,
  kek: Ceremony = { components: custodians },
): Promise<T> {
  await using hsm = await openHsm(first)
  await initialise(initialising(hsm, place.database, { kek, strict }))
  const custody = await reopen(hsm, place, { strict })
  const result = await work(custody, hsm)
  custody.close()
  return result
}

const brought = ({ missing }: AdoptionPlan) =>
  new Map(missing.map(({ id, purpose }) => [id, custodians[purpose as KekPurpose]]))

async function adopted(hsm: Hsm, place: Place, rowKey: string, strict = false): Promise<Custody> {
  const plan = await planAdoption({ hsm, database: place.database }, { rowKey, shared: true })
  const adoption = { rowKey, join: false, verify: async () => {} }
  const given = { ...options(hsm, place.database, { strict }), adoption }
  const custody = await adoptCluster(given, plan, brought(plan), undisturbed)
  await place.database.start()
  return custody
}

describe('a token that is new to a cluster', () => {
  it('opens what its components unwrap', async () => {
    await using place = await Place.fresh()
    const { rowKey, sealed, ids, mac } = await living(place, false, async (custody) => {
      const [cipher, signer, secret] = [
        await makeKey(custody, place.database, 'aes256-gcm96'),
        await makeKey(custody, place.database, 'ecdsa-p256'),
        await makeKey(custody, place.database, 'hmac'),
      ]
      const { rowKey } = custody.cluster
      const sealed = await custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('kept') })
      return { rowKey, sealed, ids: [cipher.id, signer.id, secret.id], mac: await macOf(custody, secret.id) }
    })
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const custody = await adopted(hsm, elsewhere, rowKey)
    const [cipher = '', signer = '', secret = ''] = ids
    const { operations, materials } = custody
    expect(custody.cluster.epoch).toBe(2)
    expect((await operations.cipher.decrypt(await materials.fetch(cipher), sealed)).toString()).toBe('kept')
    const scheme = { hash: undefined, prehashed: true, padding: 'pss', saltLength: 'auto', marshaling: 'jws' } as const
    expect(await operations.signer.sign(await materials.fetch(signer), Buffer.alloc(32, 1), scheme)).toHaveLength(64)
    expect(await macOf(custody, secret)).toEqual(mac)
    custody.close()
  }, 60_000)

  it('takes a dump from before the set of KEKs had a head, when its restore is accepted, and not without', async () => {
    await using place = await Place.fresh()
    await living(place, false, async (custody) => custody.cluster.anchor())
    await place.sql("DELETE FROM heads WHERE `set` = 'keks'")
    await using hsm = await openHsm(first)
    await using elsewhere = await Place.at(place.url)
    await expect(Custody.open(options(hsm, elsewhere.database))).rejects.toThrow('heads keks')
    const custody = await Custody.open(options(hsm, elsewhere.database, { acceptRestore: true, beginEpoch: true }))
    expect(custody.cluster.epoch).toBe(2)
    custody.close()
  }, 60_000)

  it('in strict mode opens what the dead token wrapped, and makes a use KEK out of which nothing leaves', async () => {
    await using place = await Place.fresh()
    const { rowKey, sealed, ids, mac } = await living(place, true, async (custody) => {
      const cipher = await makeKey(custody, place.database, 'aes256-gcm96')
      const secret = await makeKey(custody, place.database, 'hmac')
      const sealed = await custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('kept') })
      const { rowKey } = custody.cluster
      return { rowKey, sealed, ids: [cipher.id, secret.id], mac: await macOf(custody, secret.id) }
    })
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    // Opening proves it: proveStrict tries to unwrap a key that may leave.
    const custody = await adopted(hsm, elsewhere, rowKey, true)
    const [cipher = '', secret = ''] = ids
    const old = await custody.materials.fetch(cipher)
    expect(old.row.residence).toBe('wrapped')
    expect((await custody.operations.cipher.decrypt(old, sealed)).toString()).toBe('kept')
    expect(await macOf(custody, secret)).toEqual(mac)
    expect((await makeKey(custody, elsewhere.database, 'aes256-gcm96')).row.residence).toBe('wrapped')
    custody.close()
  }, 60_000)

  it('is given nothing by accept-restore, which asks for no row key', async () => {
    await using place = await Place.fresh()
    const rowKey = await living(place, false, async (custody) => custody.cluster.rowKey)
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const plan = await planAdoption({ hsm, database: elsewhere.database }, { rowKey, shared: true })
    for (const { id, ckaId, purpose } of plan.missing) {
      const name = purpose as KekPurpose
      await makeKek(hsm, { id, ckaId, purpose: name }, { components: custodians[name], strict: false })
    }
    const accepting = options(hsm, elsewhere.database, { acceptRestore: true, beginEpoch: true })
    await expect(Custody.open(accepting)).rejects.toThrow('remembers nothing of this cluster: strongroom kek adopt')
    const custody = await adopted(hsm, elsewhere, rowKey)
    expect(custody.cluster.epoch).toBe(2)
    custody.close()
  }, 60_000)

  it('is left alone by a run that may not be the only one any more, and resumed by the next', async () => {
    await using place = await Place.fresh()
    const rowKey = await living(place, false, async (custody) => custody.cluster.rowKey)
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const plan = await planAdoption({ hsm, database: elsewhere.database }, { rowKey, shared: true })
    const adoption = { rowKey, join: false, verify: async () => {} }
    for (const steps of [0, 1]) {
      let left = steps
      const alone = async () => {
        if (left-- <= 0) throw new Error('taken over')
      }
      const adopting = { ...options(hsm, elsewhere.database), adoption }
      await expect(adoptCluster(adopting, plan, brought(plan), alone)).rejects.toThrow('taken over')
      // What it has made may have been found by the other run.
      expect(await keksOf(hsm, plan.clusterId)).toBe(steps)
    }
    using custody = await adopted(hsm, elsewhere, rowKey)
    expect(custody.cluster.rowKey).toBe(rowKey)
  }, 60_000)

  it('does not believe a database that shows one row key to be vouched for and another to be opened', async () => {
    await using place = await Place.fresh()
    const { rowKey, other } = await living(place, false, async (custody, hsm) => {
      const system = await new Keks(hsm, place.database, false).active('system')
      return { rowKey: custody.cluster.rowKey, other: await makeSystemKey(hsm, system, 'rows') }
    })
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const plan = await planAdoption({ hsm, database: elsewhere.database }, { rowKey, shared: true })
    // The owner of the database swaps the row-MAC key between the two reads, for one that was once under the system
    // KEK.
    const forged = [other.kek, other.blob, other.checkValue]
    await place.sql("UPDATE system_keys SET kek = ?, `blob` = ?, check_value = ? WHERE purpose = 'rows'", forged)
    const adoption = { rowKey, join: false, verify: async () => {} }
    const adopting = { ...options(hsm, elsewhere.database), adoption }
    await expect(adoptCluster(adopting, plan, brought(plan), undisturbed)).rejects.toThrow(
      'another key than the one that was vouched',
    )
    expect(await keksOf(hsm, plan.clusterId)).toBe(0)
  }, 60_000)

  it('believes nothing, and keeps nothing, where a row was edited or a member of a set taken away', async () => {
    await using place = await Place.fresh()
    const rowKey = await living(place, false, async (custody) => {
      await makeKey(custody, place.database, 'aes256-gcm96')
      const head = place.database.head('policies')
      await place.database.transaction(async (tx) => {
        await head.create(tx)
        await head.advance(tx, [{ id: randomUUID(), rev: 1 }])
      })
      return custody.cluster.rowKey
    })
    await place.sql('UPDATE materials SET exportable = 1')
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const { database } = elsewhere
    const plan = await planAdoption({ hsm, database }, { rowKey, shared: true })
    const found: string[] = []
    const verify = async () => {
      const { damaged } = await verifyRows(database, sealedTables, [{ set: 'policies', table: policyTable }])
      found.push(...damaged)
      throw new Error('damaged')
    }
    const adopting = { ...options(hsm, database), adoption: { rowKey, join: false, verify } }
    await expect(adoptCluster(adopting, plan, brought(plan), undisturbed)).rejects.toThrow('damaged')
    expect(found).toEqual([
      expect.stringMatching(/^materials \S+: the seal is broken$/),
      expect.stringMatching(/^heads policies: the rows do not match the head of their set/),
    ])
    expect(await keksOf(hsm, plan.clusterId)).toBe(0)
    expect(await readAnchor(hsm, plan.clusterId)).toBeUndefined()
    expect(await place.sql('SELECT epoch FROM cluster')).toEqual([{ epoch: 1 }])
  }, 60_000)

  it('of a cluster whose active KEKs were born in the dead token says that nothing brings them back', async () => {
    await using place = await Place.fresh()
    const rowKey = await living(place, false, async (custody) => custody.cluster.rowKey)
    await place.sql("UPDATE keks SET origin = 'generated' WHERE purpose = 'open'")
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const planning = planAdoption({ hsm, database: elsewhere.database }, { rowKey, shared: true })
    await expect(planning).rejects.toThrow(/^no components make the active open KEK \S+: born in a token/)
  }, 60_000)

  it('makes anew a KEK that was announced and born in the dead token', async () => {
    await using place = await Place.fresh()
    const rowKey = await living(place, false, async (custody) => {
      await custody.rotation.announce('use')
      expect(await advance(custody, place)).toMatchObject({ here: true, checkValue: expect.stringMatching(/./) })
      return custody.cluster.rowKey
    })
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const custody = await adopted(hsm, elsewhere, rowKey)
    expect((await custody.rotation.status()).find(({ state }) => state === 'pending')).toMatchObject({ here: false })
    await custody.rotation.remakeAnnounced()
    expect(await advance(custody, elsewhere)).toMatchObject({ here: true, checkValue: expect.stringMatching(/./) })
    custody.close()
  }, 60_000)

  it('killed anywhere, a second run finishes it', async () => {
    await using place = await Place.fresh()
    const { rowKey, id } = await living(place, false, async ({ cluster }) => cluster)
    let done = false
    for (let call = 3; !done && call < 1000; call += 17) {
      done = await runAndDie(place.url, rowKey, call)
      await using hsm = await openHsm(second)
      await using elsewhere = await Place.at(place.url)
      if ((await readAnchor(hsm, id)) === undefined) (await adopted(hsm, elsewhere, rowKey)).close()
      const custody = await Custody.open(options(hsm, elsewhere.database))
      expect(custody.cluster.epoch).toBeGreaterThan(1)
      custody.close()
      expect(await keksOf(hsm, id)).toBe(4)
      await forget(hsm, id)
    }
    expect(done).toBe(true)
  }, 300_000)
})

/** One round of the rotation's job. @returns the pending KEK afterwards */
async function advance({ rotation }: Custody, { database }: Place): Promise<KekStatus | undefined> {
  const lease = await database.jobLease(rotation.job.name, 30)
  await rotation.advance(none, lease?.fence ?? 0n)
  await lease?.release()
  return (await rotation.status()).find(({ state }) => state === 'pending')
}

describe('what lives in one token alone', () => {
  it('is named, and refused, where its KEK was born in the dead token and has retired', async () => {
    await using place = await Place.fresh()
    const { rowKey, id } = await living(
      place,
      true,
      async (custody) => {
        // Strict mode never rewraps keys under the use KEK.
        const { id } = await makeKey(custody, place.database, 'aes256-gcm96')
        for (const purpose of kekPurposes) {
          const { id: kek } = await custody.rotation.announce(purpose, 'components')
          await custody.rotation.adopt(kek, custodians[purpose], undisturbed)
        }
        await custody.rotation.prove()
        while (await advance(custody, place));
        await advance(custody, place)
        return { rowKey: custody.cluster.rowKey, id }
      },
      'generate',
    )
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const { database } = elsewhere
    const { missing, lost } = await planAdoption({ hsm, database }, { rowKey, shared: true })
    // Of the four that were born there one has keys under it.
    expect([missing.length, lost.length]).toEqual([4, 1])
    const named = (await Promise.all(lost.map((kek) => keysUnder(database, kek.id)))).flat()
    expect(named).toEqual([`material ${id} (aes256-gcm96)`])
    const custody = await adopted(hsm, elsewhere, rowKey, true)
    const encrypt = async () =>
      custody.operations.cipher.encrypt(await custody.materials.fetch(id), { plaintext: Buffer.from('x') })
    await expect(encrypt()).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/^the use KEK \S+ is not in the token/),
    })
    custody.close()
  }, 60_000)

  it('is a refusal that says so when that token is gone, and no fault of the server', async () => {
    await using place = await Place.fresh()
    const { rowKey, id } = await living(place, false, async (custody) => {
      const { id } = await makeKey(custody, place.database, 'ecdsa-p256', { residence: 'token' })
      return { rowKey: custody.cluster.rowKey, id }
    })
    await using hsm = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    const custody = await adopted(hsm, elsewhere, rowKey)
    const scheme = { hash: undefined, prehashed: true, padding: 'pss', saltLength: 'auto', marshaling: 'jws' } as const
    const key = await custody.materials.fetch(id)
    const sign = async () => custody.operations.signer.sign(key, Buffer.alloc(32, 1), scheme)
    const message = expect.stringMatching(
      `^version 1 of this key lives in the token with serial \\S+ alone, not in the token ${hsm.token.label} of this server$`,
    )
    await expect(sign()).rejects.toMatchObject({ status: 400, message })
    custody.close()
  }, 60_000)
})

test('every sealed table of the schema is verified before a token believes a database', async () => {
  await using place = await Place.fresh()
  const rows = await place.sql(
    "SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'mac'",
  )
  expect(sealedTables.map(({ name }) => name).sort()).toEqual(rows.map(({ name }) => name).sort())
})

/** @returns whether it finished before the fatal call */
async function runAndDie(url: string, rowKey: string, call: number): Promise<boolean> {
  const fixture = join(import.meta.dirname, 'fixtures/adopt.ts')
  const child = spawn(process.execPath, [fixture, JSON.stringify(second), url, rowKey, String(call)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [said, [status, signal]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (status !== 0 && signal !== 'SIGKILL') throw new Error(said)
  return status === 0
}

async function kekObjects(hsm: Hsm, cluster: string) {
  const secrets = await hsm.find({ class: 'secret', token: true })
  const ids = await Promise.all(secrets.map(async (object) => (await hsm.attributes(object, ['id'])).id))
  return secrets.filter((_, index) => ids[index] !== undefined && clusterOf(ids[index]) === cluster)
}

const keksOf = async (hsm: Hsm, cluster: string): Promise<number> => (await kekObjects(hsm, cluster)).length

/** Makes the token a new one again. */
async function forget(hsm: Hsm, cluster: string): Promise<void> {
  const anchors = await hsm.find({ class: 'data', label: cluster, token: true })
  for (const object of [...(await kekObjects(hsm, cluster)), ...anchors]) await hsm.destroy(object)
}

async function macOf(custody: Custody, id: string): Promise<Buffer> {
  const sha256 = hashes.get('sha2-256')
  if (sha256 === undefined) throw new Error('no sha2-256')
  return custody.operations.hmacs.mac(await custody.materials.fetch(id), sha256, Buffer.from('x'))
}
