import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { envelopeOf, wrappingKeyOf } from '../../api/transit/envelope.ts'
import vault from '../../api/transit/fixtures/vaultblobs.json' with { type: 'json' }
import { makeEc, tool } from '../../managed/tool.ts'
import { startServer } from '../../support/server.ts'
import { createToken, type TestToken } from '../../support/token.ts'
import { alive, decrypt, encrypt, expectRefused, expectServed, serving, until } from '../nodes.ts'
import { openSql } from '../sql.ts'
import { verifyWhole } from '../writers.ts'
import { useDoomed } from './doomed.ts'

/** kill -9 at the COMMIT of keys that come from elsewhere: imports, restores, and keys in tokens of others. */

let sibling: TestToken
let pem = ''
// Before the servers begin: SoftHSM shows a process the tokens that it began with.
beforeAll(async () => {
  sibling = await createToken('sibling')
  await makeEc(sibling, 'ec', '01')
})
const libraries = [{ name: 'same', library: '/usr/lib/softhsm/libsofthsm2.so' }]
const doomed = useDoomed({ config: { pkcs11Libraries: libraries } })
const { die } = doomed
beforeAll(async () => {
  pem = await wrappingKeyOf(doomed.root)
  await encrypt(doomed.root, 'bystander')
}, 60_000)

let names = 0
const newName = (): string => `arrival-${names++}`
const post = (path: string, body = {}) => doomed.root.post(`transit/${path}`, body).then((reply) => expectServed(reply))
const read = async (name: string): Promise<Record<string, unknown>> => {
  const reply = await doomed.root.get(`transit/keys/${name}`)
  return reply.status === 404 ? {} : (expectServed(reply).body as { data: Record<string, unknown> }).data
}
const latest = async (name: string) => (await read(name)).latest_version
const whole = () => verifyWhole(doomed.root, doomed.sql)
const ec = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of an import and of versions that follow it',
  async (when) => {
    const done = when === 'after'
    for (const body of [
      { ciphertext: envelopeOf(pem, randomBytes(32)), allow_rotation: true },
      { ciphertext: envelopeOf(pem, randomBytes(32)), derived: true, context: 'eA==' },
      { public_key: ec().publicKey.export({ type: 'spki', format: 'pem' }), type: 'ecdsa-p256' },
    ]) {
      const name = newName()
      await die(when, (node) => node.post(`transit/keys/${name}/import`, body))
      expect(await latest(name)).toBe(done ? 1 : undefined)
      await whole()
      // Either way the name stays usable: an existing key stays, and a missing one can be made.
      const again = await doomed.root.post(`transit/keys/${name}/import`, body)
      if (done) expectRefused(again)
      else expectServed(again)
    }

    const name = newName()
    await post(`keys/${name}/import`, { ciphertext: envelopeOf(pem, randomBytes(32)) })
    const ciphertext = await encrypt(doomed.root, name)
    const next = { ciphertext: envelopeOf(pem, randomBytes(32)) }
    await die(when, (node) => node.post(`transit/keys/${name}/import_version`, next))
    expect(await latest(name)).toBe(done ? 2 : 1)
    expectServed(await decrypt(doomed.root, name, ciphertext))

    const half = newName()
    const { publicKey, privateKey } = ec()
    const public_key = publicKey.export({ type: 'spki', format: 'pem' })
    await post(`keys/${half}/import`, { public_key, type: 'ecdsa-p256' })
    const other = { ciphertext: envelopeOf(pem, privateKey.export({ type: 'pkcs8', format: 'der' })) }
    await die(when, (node) => node.post(`transit/keys/${half}/import_version`, other))
    const custody = (await read(half)).custody as Record<string, { residence: string }>
    expect(custody[1]?.residence).toBe(done ? 'wrapped' : 'public')
    const signed = await doomed.root.post(`transit/sign/${half}`, { input: 'eA==' })
    if (done) expectServed(signed)
    else expectRefused(signed)
    await whole()
  },
  120_000,
)

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of a restore, plain and by force, of our backups and of Vault’s',
  async (when) => {
    const done = when === 'after'
    const source = newName()
    await post(`keys/${source}`, { allow_plaintext_backup: true })
    for (let version = 2; version <= 4; version++) await post(`keys/${source}/rotate`)
    const ciphertext = await encrypt(doomed.root, source)
    const ours = (await doomed.root.get(`transit/backup/${source}`)).string('data.backup')
    // None of them rotates by itself: a key of 2024 whose period is over would be rotated as soon as it is there.
    for (const [backup, versions] of [
      [ours, 4],
      [vault['convergent-mixed'], 2],
      [vault['convergent-3'], 1],
      [vault.p256, 1],
    ] as const) {
      const name = newName()
      await die(when, (node) => node.post('transit/restore', { backup, name }))
      expect(await latest(name)).toBe(done ? versions : undefined)
      await whole()

      const taken = newName()
      await post(`keys/${taken}`)
      for (let version = 2; version <= 3; version++) await post(`keys/${taken}/rotate`)
      const old = await encrypt(doomed.root, taken)
      await die(when, (node) => node.post(`transit/restore/${taken}`, { backup, force: true }))
      expect(await latest(taken)).toBe(done ? versions : 3)
      if (done) expectRefused(await decrypt(doomed.root, taken, old))
      else expectServed(await decrypt(doomed.root, taken, old))
      if (backup === ours && done) expectServed(await decrypt(doomed.root, taken, ciphertext))
      await whole()
    }
    const before = await read(source)
    await die(when, (node) => node.get(`transit/backup/${source}`))
    const { backup_info: info, ...rest } = await read(source)
    expect(rest).toEqual({ ...before, backup_info: undefined })
    expect(info).toBeDefined()
  },
  240_000,
)

const leaseOfManaged = "'managed key "
/** Whether a transaction is a managed key's: leases of jobs are not. */
const isOfManaged = (transaction: string): boolean =>
  !transaction.includes('job_leases') || transaction.includes(leaseOfManaged)

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of a managed key, of a key that uses it, and of its rotation',
  async (when) => {
    const done = when === 'after'
    const { label: token_label, pin } = sibling
    const settings = { library: 'same', token_label, pin, mechanism: '0x1041', key_label: 'ec', any_mount: true }
    const managed = newName()
    await die(when, (node) => node.post(`sys/managed-keys/pkcs11/${managed}`, settings))
    expect((await doomed.root.get(`sys/managed-keys/pkcs11/${managed}`)).status).toBe(done ? 200 : 404)
    expectServed(await doomed.root.post(`sys/managed-keys/pkcs11/${managed}`, settings))

    const made = { type: 'managed_key', managed_key_name: managed }
    const name = newName()
    await die(when, (node) => node.post(`transit/keys/${name}`, made))
    expect(await latest(name)).toBe(done ? 1 : undefined)
    await whole()
    await post(`keys/${name}`, made)
    await die(when, (node) => node.post(`transit/keys/${name}/rotate`, { managed_key_name: managed }))
    expect(await latest(name)).toBe(done ? 2 : 1)
    expectServed(await doomed.root.post(`transit/sign/${name}`, { input: 'eA==' }))
    await whole()

    // A key that is made in its token on first use, under a lease: COMMITs of the lease, of its end, and of the key
    // that uses it.
    for (const nth of [2, 3]) {
      const label = newName()
      const generating = { ...settings, key_label: label, allow_generate_key: true, curve: 'P-256' }
      expectServed(await doomed.root.post(`sys/managed-keys/pkcs11/${label}`, generating))
      const user = newName()
      const using = { type: 'managed_key', managed_key_name: label }
      await die(when, (node) => node.post(`transit/keys/${user}`, using), nth, isOfManaged)
      expect(await latest(user)).toBe(done && nth === 3 ? 1 : undefined)
      // A key that exists after a death is found by its label, not made twice.
      await post(`keys/${user}`, using)
      expectServed(await doomed.root.post(`transit/sign/${user}`, { input: 'eA==' }))
      const objects = await tool(sibling, '--list-objects', '--type', 'privkey')
      expect(objects.split('\n').filter((line) => line.trim().endsWith(` ${label}`))).toHaveLength(1)
      await whole()
    }
  },
  120_000,
)

test('killed again and again at any moment, keys that arrive are there whole, or not at all', async () => {
  await using server = await startServer({ workers: 2 })
  const root = server.client()
  const wrapping = await wrappingKeyOf(root)
  expectServed(await root.post('transit/keys/source', { allow_plaintext_backup: true }))
  for (let version = 2; version <= 20; version++) expectServed(await root.post('transit/keys/source/rotate'))
  const ciphertext = await encrypt(root, 'source')
  const backup = (await root.get('transit/backup/source')).string('data.backup')
  const arrived = new Map<string, number>()
  let stopping = false
  /** One way of arriving after the other, under names of its own; acknowledged ones are noted. */
  const arrive = async (writer: number): Promise<void> => {
    for (let turn = 0; !stopping; turn++) {
      const name = `w${writer}-${turn}`
      const ask = async (path: string, body: object, versions: number): Promise<boolean> => {
        const reply = await root.post(`transit/${path}`, body).catch(() => undefined)
        if (reply === undefined) await delay(50)
        if (reply?.status !== 204) return false
        arrived.set(name, versions)
        return true
      }
      if (turn % 2 === 0) {
        if (!(await ask('restore', { backup, name }, 20))) continue
        expect((await decrypt(root, name, ciphertext).catch(() => undefined))?.status ?? 200).not.toBe(400)
        await ask('restore', { backup: vault['convergent-mixed'], name, force: true }, 2)
      } else {
        const next = () => ({ ciphertext: envelopeOf(wrapping, randomBytes(32)) })
        if (await ask(`keys/${name}/import`, next(), 1)) await ask(`keys/${name}/import_version`, next(), 2)
      }
    }
  }
  const arriving = [0, 1, 2, 3].map(arrive)
  for (let death = 0; death < 4; death++) {
    const before = arrived.size
    await until(() => arrived.size > before + 5)
    const workers = serving(server)
    if (death < 3) {
      process.kill(workers[0] ?? 0, 'SIGKILL')
      await until(() => serving(server).filter((pid) => pid !== workers[0]).length === 2)
    } else {
      await server.kill()
      await until(() => !workers.some(alive))
      await server.start()
    }
  }
  stopping = true
  await Promise.all(arriving)
  for (const [name, versions] of arrived) {
    const { data } = expectServed(await root.get(`transit/keys/${name}`), name).body as { data: Record<string, number> }
    // Later requests without an answer may have been carried out.
    const possible = versions === 20 ? [20, 2] : versions === 1 ? [1, 2] : [versions]
    expect(possible, name).toContain(data.latest_version)
  }
  await using sql = await openSql(server.database.url)
  await verifyWhole(root, sql)
}, 120_000)
