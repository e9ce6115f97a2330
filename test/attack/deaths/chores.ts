import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Line, linesOf } from '../../audit/device.ts'
import type { Client, Reply } from '../../support/client.ts'
import { runDirectory } from '../../support/directory.ts'
import { base64, expectServed } from '../nodes.ts'

/** An administrator's daily work, on a node that dies, and the state that must follow from it. */
export interface Chores {
  readonly acknowledged: number
  /** Request ids of answers that came. */
  readonly answered: readonly string[]
  /** What each audit device that was enabled here has in its file. */
  records(): Line[][]
  /** Lets requests that are under way end, and begins no more. */
  stop(): Promise<void>
  /** Checks that everything is as answered or, where no answer came, as before or after that request. */
  verify(): Promise<void>
}

/** The possible states of a thing: one, or two while no answer says whether it changed. */
type States<T> = T[]

interface Token {
  readonly credential: string
  readonly accessor: string
  states: States<'alive' | 'revoked'>
  renewed: boolean
}
interface Limited {
  readonly accessor: string
  sent: number
  acknowledged: number
}
interface Lease {
  states: States<'alive' | 'revoked'>
  renewed: boolean
}
interface Moved {
  states: States<string | undefined>
  ciphertext: string | undefined
  descriptions: States<string>
}

const lifeSeconds = 3600
const uses = 6

export interface ChoresOptions {
  /** May do everything; the node behind it may be stopped or killed at any moment. */
  readonly root: Client
  clientOf(credential: string): Client
  /** Ids of leases that nobody else touches, of an hour each. */
  readonly leaseIds: readonly string[]
}

export function startChores({ root, clientOf, leaseIds }: ChoresOptions): Chores {
  const tokens: Token[] = []
  const limited: Limited[] = []
  const leases = new Map<string, Lease>()
  const policies = new Map<string, { states: States<string | undefined> }>()
  const mounts = new Map<string, Moved>()
  const devices = new Map<string, { states: States<boolean> }>()
  const answered: string[] = []
  const logs = mkdtempSync(join(runDirectory(), 'chores-'))
  let acknowledged = 0
  let stopping = false

  /** The answer if it is a success; undefined if the outcome is unknown. Asks again while nobody listens. */
  async function ask(request: () => Promise<Reply>): Promise<Reply | undefined> {
    const reply = await request().catch(({ code }) => (code === 'ECONNREFUSED' ? 'nobody' : undefined))
    if (reply === undefined || reply === 'nobody' || reply.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      return reply === 'nobody' ? ask(request) : undefined
    }
    acknowledged += 1
    if (reply.status === 200) answered.push(reply.string('request_id'))
    return expectServed(reply)
  }

  /** Goes on to the next state; @returns whether that is certain */
  async function become<T>(thing: { states: States<T> }, next: T, request: () => Promise<Reply>): Promise<boolean> {
    const before = thing.states
    thing.states = [...before, next]
    if ((await ask(request)) === undefined) return false
    thing.states = [next]
    return true
  }

  async function make(by: Client, asked: object): Promise<Token | undefined> {
    const reply = await ask(() => by.post('auth/token/create', { ttl: lifeSeconds, ...asked }))
    if (reply === undefined) return undefined
    const [credential, accessor] = [reply.string('auth.client_token'), reply.string('auth.accessor')]
    const token: Token = { credential, accessor, states: ['alive'], renewed: false }
    tokens.push(token)
    return token
  }

  /** A parent and its child: the parent is renewed and, every other time, revoked, with the child or without. */
  async function family(_: string, turn: number): Promise<void> {
    const parent = await make(root, { policies: ['root'] })
    const child = parent && (await make(clientOf(parent.credential), { policies: ['default'] }))
    if (!parent || !child) return
    parent.renewed =
      (await ask(() => root.post('auth/token/renew', { token: parent.credential, increment: 2 * lifeSeconds }))) !==
      undefined
    if (turn % 2 === 0) return
    const alone = turn % 4 === 1
    if (!alone) child.states = ['alive', 'revoked']
    const path = alone ? 'auth/token/revoke-orphan' : 'auth/token/revoke'
    const revoked = await become(parent, 'revoked', () => root.post(path, { token: parent.credential }))
    if (revoked && !alone) child.states = ['revoked']
  }

  /** A token whose uses are counted, used. */
  async function counted(): Promise<void> {
    const reply = await ask(() =>
      root.post('auth/token/create', { policies: ['default'], num_uses: uses, ttl: lifeSeconds }),
    )
    if (reply === undefined) return
    const token = { accessor: reply.string('auth.accessor'), sent: 0, acknowledged: 0 }
    limited.push(token)
    const client = clientOf(reply.string('auth.client_token'))
    while (token.sent < uses - 1) {
      token.sent += 1
      if (await ask(() => client.get('auth/token/lookup-self'))) token.acknowledged += 1
    }
  }

  /** A lease that was given before: renewed, and every other one taken back. */
  async function lease(_: string, turn: number): Promise<void> {
    const id = leaseIds[turn]
    if (id === undefined) return void (await ask(() => root.list('sys/leases/lookup')))
    const thing: Lease = { states: ['alive'], renewed: false }
    leases.set(id, thing)
    const increment = 2 * lifeSeconds
    thing.renewed = (await ask(() => root.post('sys/leases/renew', { lease_id: id, increment }))) !== undefined
    if (turn % 2 === 1) await become(thing, 'revoked', () => root.post('sys/leases/revoke', { lease_id: id }))
  }

  async function policy(name: string, turn: number): Promise<void> {
    const thing: { states: States<string | undefined> } = { states: [undefined] }
    policies.set(name, thing)
    const path = `sys/policies/acl/${name}`
    for (let revision = 0; revision < 3; revision++) {
      const text = `path "${name}/${revision}" { capabilities = ["read"] }`
      if (!(await become(thing, text, () => root.post(path, { policy: text })))) return
    }
    if (turn % 2 === 1) await become(thing, undefined, () => root.delete(path))
  }

  /** A mount: enabled, used, tuned, moved, and every third time removed. */
  async function mount(name: string, turn: number): Promise<void> {
    const thing: Moved = { states: [undefined], ciphertext: undefined, descriptions: ['made'] }
    mounts.set(name, thing)
    if (!(await become(thing, name, () => root.post(`sys/mounts/${name}`, { type: 'transit', description: 'made' }))))
      return
    const sealed = await ask(() => root.post(`${name}/encrypt/key`, { plaintext: base64(name) }))
    thing.ciphertext = sealed?.string('data.ciphertext')
    thing.descriptions = ['made', 'tuned']
    if (!(await ask(() => root.post(`sys/mounts/${name}/tune`, { description: 'tuned' })))) return
    thing.descriptions = ['tuned']
    const target = `${name}-moved`
    if (!(await become(thing, target, () => root.post('sys/remount', { from: name, to: target })))) return
    if (turn % 3 === 2) await become(thing, undefined, () => root.delete(`sys/mounts/${target}`))
  }

  async function device(name: string, turn: number): Promise<void> {
    const thing: { states: States<boolean> } = { states: [false] }
    devices.set(name, thing)
    mkdirSync(join(logs, name))
    const options = { file_path: join(logs, name, 'audit.log') }
    const enabled = await become(thing, true, () => root.post(`sys/audit/${name}`, { type: 'file', options }))
    if (enabled && turn % 4 !== 3) await become(thing, false, () => root.delete(`sys/audit/${name}`))
  }

  const running = Object.entries({ family, counted, lease, policy, mount, device }).map(async ([kind, chore]) => {
    for (let turn = 0; !stopping; turn++) await chore(`${kind}-${turn}`, turn)
  })

  async function verifyTokens(): Promise<void> {
    for (const { credential, accessor, states, renewed } of tokens) {
      const self = await clientOf(credential).get('auth/token/lookup-self')
      expect([200, 403], self.text).toContain(self.status)
      expect(states, accessor).toContain(self.status === 200 ? 'alive' : 'revoked')
      const byAccessor = await root.post('auth/token/lookup-accessor', { accessor })
      expect(byAccessor.status, byAccessor.text).toBe(self.status === 200 ? 200 : 400)
      if (self.status !== 200 || !renewed) continue
      expect((self.body as { data: { ttl: number } }).data.ttl).toBeGreaterThan(lifeSeconds)
    }
    for (const { accessor, sent, acknowledged } of limited) {
      const found = expectServed(await root.post('auth/token/lookup-accessor', { accessor }))
      const { num_uses: left } = (found.body as { data: { num_uses: number } }).data
      expect(left, 'an acknowledged use is taken').toBeLessThanOrEqual(uses - acknowledged)
      expect(left, 'a use that was not asked for is not').toBeGreaterThanOrEqual(uses - sent)
    }
  }

  async function verifyLeases(): Promise<void> {
    for (const [id, { states, renewed }] of leases) {
      const reply = await root.post('sys/leases/lookup', { lease_id: id })
      if (reply.status !== 400) expectServed(reply, id)
      const left = reply.status === 400 ? undefined : (reply.body as { data: { ttl: number } }).data.ttl
      // A lease that is being taken back has ended, but its row stays until its engine has done so.
      expect(states, id).toContain(left ? 'alive' : 'revoked')
      if (left === 0) expect(states, id).toContain('alive')
      if (left && renewed) expect(left).toBeGreaterThan(lifeSeconds)
    }
  }

  async function verifyPolicies(): Promise<void> {
    for (const [name, { states }] of policies) {
      const reply = await root.get(`sys/policies/acl/${name}`)
      if (reply.status !== 404) expectServed(reply, name)
      expect(states, name).toContain(reply.status === 404 ? undefined : reply.string('data.policy'))
    }
  }

  async function verifyMounts(): Promise<void> {
    const listed = expectServed(await root.get('sys/mounts')).body as { data: Record<string, { description: string }> }
    for (const [name, { states, ciphertext, descriptions }] of mounts) {
      const there = [name, `${name}-moved`].filter((path) => `${path}/` in listed.data)
      expect(there.length, name).toBeLessThanOrEqual(1)
      const [path] = there
      expect(states, name).toContain(path)
      for (const gone of [name, `${name}-moved`].filter((one) => one !== path)) {
        expect((await root.get(`${gone}/keys/key`)).text).toContain('no handler for route')
      }
      if (path === undefined) continue
      expect(descriptions, name).toContain(listed.data[`${path}/`]?.description)
      if (ciphertext === undefined) continue
      const opened = expectServed(await root.post(`${path}/decrypt/key`, { ciphertext }), path)
      expect(opened.string('data.plaintext')).toBe(base64(name))
    }
  }

  async function verifyDevices(): Promise<void> {
    const listed = expectServed(await root.get('sys/audit')).body as { data: object }
    for (const [name, { states }] of devices) expect(states, name).toContain(`${name}/` in listed.data)
  }

  return {
    get acknowledged() {
      return acknowledged
    },
    answered,
    records: () =>
      readdirSync(logs)
        .map((name) => join(logs, name, 'audit.log'))
        .filter((file) => existsSync(file))
        .map((file) => linesOf(readFileSync(file, 'utf8'))),
    async stop() {
      stopping = true
      await Promise.all(running)
    },
    async verify() {
      await verifyTokens()
      await verifyLeases()
      await verifyPolicies()
      await verifyMounts()
      await verifyDevices()
    },
  }
}
