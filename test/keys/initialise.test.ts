import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CKM } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { adoptCluster, planAdoption } from '../../src/keys/cluster/adoption.ts'
import { Custody } from '../../src/keys/custody.ts'
import { clusterState, initialise } from '../../src/keys/initialise.ts'
import { type Component, componentCheckValue } from '../../src/keys/kek/components.ts'
import { clusterOf } from '../../src/keys/kek/identity.ts'
import type { KekPurpose } from '../../src/keys/tables.ts'
import { relabel } from '../hsm/support/relabel.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { component, custodians, eachPurpose } from './custodians.ts'
import { initialising, makeKey, openCluster, openHsm, options, Place, reopen, undisturbed } from './support.ts'

/** PKCS#11 v3.0 and before. */
const [ckrActionProhibited, ckrAttributeReadOnly] = [0x1b, 0x10]

let token: TestToken
let second: TestToken
let hsm: Hsm

beforeAll(async () => {
  token = await createToken('initialise')
  // SoftHSM sees only the tokens that exist when it is initialised.
  second = await createToken('second')
  hsm = await openHsm(token)
}, 60_000)

afterAll(() => hsm[Symbol.asyncDispose]())

async function objectsOf(cluster: string): Promise<{ keks: number; anchors: number }> {
  let keks = 0
  for (const object of await hsm.find({ class: 'secret', token: true })) {
    const { id } = await hsm.attributes(object, ['id'])
    if (id !== undefined && clusterOf(id) === cluster) keks += 1
  }
  const anchors = await hsm.find({ class: 'data', label: cluster, token: true })
  return { keks, anchors: anchors.length }
}

describe('initialise', () => {
  it('makes four KEKs, three system keys and one anchor, once', async () => {
    await using place = await Place.fresh()
    expect(await clusterState(place.database)).toBe('absent')
    const { clusterId } = await initialise(initialising(hsm, place.database))
    expect(await clusterState(place.database)).toBe('ready')
    expect(await objectsOf(clusterId)).toEqual({ keks: 4, anchors: 1 })
    expect(await place.sql('SELECT purpose FROM system_keys ORDER BY purpose')).toHaveLength(3)
    await expect(initialise(initialising(hsm, place.database))).rejects.toThrow('initialised already')
    const custody = await reopen(hsm, place)
    expect(custody.cluster.id).toBe(clusterId)
    custody.close()
  })

  it('says that the token holds keys of another cluster', async () => {
    await using one = await Place.fresh()
    await using other = await Place.fresh()
    const { clusterId } = await initialise(initialising(hsm, one.database))
    const said: Record<string, unknown>[] = []
    const log = pino({ level: 'warn' }, { write: (line) => void said.push(JSON.parse(line)) })
    await initialise(initialising(hsm, other.database, { log }))
    expect(said).toMatchObject([{ msg: 'the token holds keys of other clusters', token: hsm.token.label }])
    expect(said[0]?.clusters).toContain(clusterId)
  })

  it('what populate makes is made again when it failed, and ready comes last', async () => {
    await using place = await Place.fresh()
    const failing = initialising(hsm, place.database, {
      populate: async () => {
        throw new Error('no mounts today')
      },
    })
    await expect(initialise(failing)).rejects.toThrow('no mounts today')
    expect(await clusterState(place.database)).toBe('initialising')
    await expect(Custody.open(options(hsm, place.database))).rejects.toThrow('was not finished')
    const unsealHash = Buffer.from('hash')
    const { clusterId } = await initialise(
      initialising(hsm, place.database, { populate: async () => ({ unsealHash }) }),
    )
    expect(await objectsOf(clusterId)).toEqual({ keks: 4, anchors: 1 })
    const custody = await reopen(hsm, place)
    expect(custody.cluster.unsealHash).toEqual(unsealHash)
    custody.close()
  })

  it('what fails once it is ready is told, and the cluster is as good as any', async () => {
    await using place = await Place.fresh()
    // What the next worker repeats: the token's record of the finished initialisation.
    await place.sql(`CREATE TRIGGER ending AFTER UPDATE ON cluster FOR EACH ROW
      IF NEW.state = 'ready' THEN INSERT INTO saved SELECT * FROM heads; DELETE FROM heads; END IF`)
    await place.sql('CREATE TABLE saved AS SELECT * FROM heads')
    let clusterId = ''
    const ready = (id: string) => {
      clusterId = id
    }
    const unanchored = initialise(initialising(hsm, place.database, { ready }))
    await expect(unanchored).rejects.toThrow('the head of the set of KEKs is missing')
    expect(await clusterState(place.database)).toBe('ready')
    await place.sql('INSERT INTO heads SELECT * FROM saved')
    const custody = await reopen(hsm, place)
    expect(custody.cluster.id).toBe(clusterId)
    await custody.cluster.anchor()
    custody.close()
  })

  it('of several at the same time one wins, and the others leave nothing behind', async () => {
    await using place = await Place.fresh()
    const others = await Promise.all([1, 2, 3].map(() => Place.at(place.url)))
    const runs = [place, ...others].map(({ database }) => initialise(initialising(hsm, database)))
    const outcomes = await Promise.allSettled(runs)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const [cluster, ...rest] = await place.sql('SELECT id FROM cluster')
    expect(rest).toEqual([])
    expect(await objectsOf(String(cluster?.id))).toEqual({ keks: 4, anchors: 1 })
    for (const other of others) await other[Symbol.asyncDispose]()
    const custody = await reopen(hsm, place)
    custody.close()
  }, 60_000)

  it('killed anywhere, a second run finishes it and leaves nothing behind', async () => {
    let done = false
    for (let call = 1; !done && call < 1000; call += 11) {
      await using place = await Place.fresh()
      done = await runAndDie(place.url, call)
      if (done) break
      await place.sql('UPDATE job_leases SET expires_at = 0')
      if ((await clusterState(place.database)) !== 'ready') await initialise(initialising(hsm, place.database))
      const custody = await reopen(hsm, place)
      await custody.cluster.anchor()
      expect(await objectsOf(custody.cluster.id)).toEqual({ keks: 4, anchors: 1 })
      const material = await makeKey(custody, place.database, 'aes256-gcm96')
      const { iv, sealed } = await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('good') })
      expect((await custody.operations.cipher.decrypt(material, { iv, sealed })).toString()).toBe('good')
      custody.close()
    }
    expect(done).toBe(true)
  }, 300_000)

  /** @returns whether it finished before the fatal call */
  async function runAndDie(url: string, call: number): Promise<boolean> {
    const fixture = join(import.meta.dirname, 'fixtures/initialise.ts')
    const child = spawn(process.execPath, [fixture, JSON.stringify(token), url, String(call)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [said, [status, signal]] = await Promise.all([text(child.stderr), once(child, 'close')])
    if (status !== 0 && signal !== 'SIGKILL') throw new Error(said)
    return status === 0
  }
})

describe('components', () => {
  it('a wrong check value is refused before anything is made', async () => {
    await using place = await Place.fresh()
    const good = [component(1), component(2)]
    const bad = [component(1), { ...component(2), checkValue: Buffer.alloc(8) }]
    const kek = { components: eachPurpose((purpose) => (purpose === 'system' ? bad : good)) }
    const before = (await hsm.find({ class: 'secret', token: true })).length
    await expect(initialise(initialising(hsm, place.database, { kek }))).rejects.toThrow('component 2 does not match')
    expect((await hsm.find({ class: 'secret', token: true })).length).toBe(before)
  })

  it('the same components make the same KEK on a second token, which then opens the same database', async () => {
    await using place = await Place.fresh()
    await initialise(initialising(hsm, place.database, { kek: { components: custodians } }))
    const custody = await reopen(hsm, place)
    const material = await makeKey(custody, place.database, 'ecdsa-p256')
    const [row] = await place.sql("SELECT check_value FROM keks WHERE purpose = 'use'")
    expect(row?.check_value).toEqual(componentCheckValue(Buffer.alloc(32, 10 ^ 99)))

    await using node = await openHsm(second)
    await using elsewhere = await Place.at(place.url)
    await expect(Custody.open(options(node, elsewhere.database))).rejects.toThrow('is not in the token')
    const { rowKey } = custody.cluster
    const ground = { hsm: node, database: elsewhere.database }
    const plan = await planAdoption(ground, { rowKey, shared: false })
    expect(plan.missing).toHaveLength(4)
    const brought = (components: (purpose: KekPurpose) => readonly Component[]) =>
      new Map(plan.missing.map(({ id, purpose }) => [id, components(purpose as KekPurpose)]))
    const adoption = { rowKey, join: true, verify: async () => {} }
    const adopting = { ...options(node, elsewhere.database), adoption }
    const wrong = brought(() => [component(1), component(2)])
    await expect(adoptCluster(adopting, plan, wrong, undisturbed)).rejects.toThrow('do not make')
    const opened = await adoptCluster(
      adopting,
      plan,
      brought((purpose) => custodians[purpose]),
      undisturbed,
    )
    expect(opened.cluster.epoch).toBe(1)
    await elsewhere.database.start()
    const scheme = { hash: undefined, prehashed: true, padding: 'pss', saltLength: 'auto', marshaling: 'jws' } as const
    const same = await opened.materials.fetch(material.id)
    expect(await opened.operations.signer.sign(same, Buffer.alloc(32, 1), scheme)).toHaveLength(64)
    opened.close()
    custody.close()
  }, 60_000)
})

describe('a KEK in the token', () => {
  it('cannot decrypt, encrypt, be changed, be copied into more, or come out', async () => {
    await using place = await Place.fresh()
    const custody = await openCluster(hsm, place)
    const rows = await place.sql('SELECT purpose, cka_id FROM keks')
    expect(rows).toHaveLength(4)
    for (const { cka_id: id } of rows) {
      const [kek] = await hsm.find({ class: 'secret', id, token: true })
      if (kek === undefined) throw new Error('no KEK')
      const gcm = { type: CKM.AES_GCM, gcm: { iv: Buffer.alloc(12), tagBits: 128 } }
      const attempts = [
        () => hsm.encrypt(kek, gcm, Buffer.alloc(16)),
        () => hsm.decrypt(kek, gcm, Buffer.alloc(32)),
        () => hsm.sign(kek, { type: CKM.AES_CMAC }, Buffer.alloc(16), 16),
        () => hsm.wrap(kek, hsm.capabilities.kwp, kek),
      ]
      for (const attempt of attempts) await expect((async () => attempt())()).rejects.toBeInstanceOf(HsmRefusal)
      expect([ckrActionProhibited, ckrAttributeReadOnly]).toContain(relabel(token.library, hsm, kek))
      const seen = await hsm.attributes(kek, ['value', 'modifiable', 'copyable', 'extractable', 'sensitive'])
      expect(seen).toEqual({
        value: undefined,
        modifiable: false,
        copyable: false,
        extractable: false,
        sensitive: true,
      })
    }
    custody.close()
  })
})
