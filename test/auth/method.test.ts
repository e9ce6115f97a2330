import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tokenMethod } from '../../src/auth/methods/token.ts'
import { ApiError, errorLines } from '../../src/errors.ts'
import { Answer, type Method, type Mount } from '../../src/route.ts'
import { createWorld, type World } from './world.ts'

const mount: Mount = { uuid: 'm', path: 'auth/token/', type: 'token', config: {} }

describe('auth/token', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld()
    await world.node.policies.write('app', 'path "x" { capabilities = ["read"] }')
    await world.node.policies.write('maker', 'path "auth/token/create" { capabilities = ["update"] }')
    await world.node.policies.write('chief', 'path "auth/token/create" { capabilities = ["update", "sudo"] }')
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  async function call(credential: string, method: Method, path: string, body: Record<string, unknown> = {}) {
    const engine = tokenMethod(world.node.context)
    const route = engine.routes.find((candidate) => candidate.method === method && candidate.path === path)
    const identity = await world.node.authenticator.authenticate(credential)
    if (route === undefined || identity === undefined) throw new Error('no such route, or not signed in')
    const warnings: string[] = []
    const { caller } = identity
    const warn = (text: string) => void warnings.push(text)
    const common = {
      context: engine.context,
      mount,
      params: {},
      path,
      requestId: 'r',
      capability: 'update',
      caller,
      warn,
    }
    const outcome = await route.run({ ...common, body } as Parameters<typeof route.run>[0])
    return { outcome, auth: outcome instanceof Answer ? outcome.auth : null, warnings }
  }
  const create = async (credential: string, body: Record<string, unknown>) => {
    const { auth, warnings } = await call(credential, 'POST', 'create', body)
    return { auth, warnings, token: String(auth?.client_token), accessor: String(auth?.accessor) }
  }
  const refusal = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    if (!(error instanceof ApiError)) throw new Error('was not refused', { cause: error })
    return [error.status, ...errorLines(error)]
  }

  test('create answers with the auth object of the reference', async () => {
    const { auth, warnings } = await create(world.rootToken, {
      policies: ['App', 'nosuch'],
      ttl: 600,
      meta: { team: 'a' },
      display_name: 'my app',
    })
    expect(auth).toEqual({
      client_token: expect.stringMatching(/^hvs\.[0-9A-Za-z]{32}$/),
      accessor: expect.stringMatching(/^[0-9A-Za-z]{24}$/),
      policies: ['app', 'default', 'nosuch'],
      token_policies: ['app', 'default', 'nosuch'],
      metadata: { team: 'a' },
      lease_duration: 600,
      renewable: true,
      entity_id: '',
      token_type: 'service',
      orphan: false,
      mfa_requirement: null,
      num_uses: 0,
    })
    expect(warnings).toEqual(['Policy "nosuch" does not exist'])
  })

  test('looking oneself up repeats the credential, looking up by accessor does not', async () => {
    const { token, accessor } = await create(world.rootToken, { policies: ['app'], ttl: 600, period: 300 })
    const self = (await call(token, 'GET', 'lookup-self')).outcome
    expect(self).toMatchObject({
      id: token,
      accessor,
      policies: ['app', 'default'],
      path: 'auth/token/create',
      meta: null,
      display_name: 'token',
      num_uses: 0,
      orphan: false,
      creation_ttl: 300,
      ttl: 300,
      period: 300,
      explicit_max_ttl: 0,
      entity_id: '',
      type: 'service',
      renewable: true,
    })
    expect((await call(world.rootToken, 'POST', 'lookup', { token })).outcome).toEqual(self)
    expect((await call(token, 'POST', 'lookup')).outcome).toEqual(self)
    expect((await call(token, 'GET', 'lookup')).outcome).toEqual(self)
    expect((await call(world.rootToken, 'POST', 'lookup-accessor', { accessor })).outcome).toEqual({
      ...(self as object),
      id: '',
    })
    expect((await call(world.rootToken, 'GET', 'lookup-self')).outcome).toMatchObject({
      policies: ['root'],
      expire_time: null,
      ttl: 0,
      renewable: false,
      orphan: true,
      path: 'auth/token/root',
    })
  })

  test('renewing oneself extends the life and warns when it was capped', async () => {
    const { token } = await create(world.rootToken, { policies: ['app'], ttl: 100, explicit_max_ttl: 200 })
    world.clock.ahead += 50_000
    const { auth, warnings } = await call(token, 'POST', 'renew-self', { increment: 1000 })
    expect(auth).toMatchObject({ client_token: token })
    expect(auth?.lease_duration).toBeGreaterThan(100)
    expect(auth?.lease_duration).toBeLessThanOrEqual(150)
    expect(warnings).toEqual([expect.stringContaining('capped')])
    expect((await call(token, 'GET', 'lookup-self')).outcome).toHaveProperty('last_renewal_time')
    expect(await refusal(call(world.rootToken, 'POST', 'renew-self'))).toEqual([400, 'lease is not renewable'])
  })

  test('renewing without increment repeats the last one, and limits above the system’s are shown as they were asked for', async () => {
    const { token } = await create(world.rootToken, { policies: ['app'], ttl: 100 })
    await call(token, 'POST', 'renew-self', { increment: 300 })
    expect((await call(token, 'POST', 'renew-self')).auth).toMatchObject({ lease_duration: 300 })
    const long = 3_000_000
    const asked = { policies: ['app'], ttl: 600, explicit_max_ttl: long, period: long }
    const made = await create(world.rootToken, asked)
    expect(made.warnings).toEqual([expect.stringMatching(/^Period of "833h20m0s" exceeded .* "768h0m0s"/)])
    const shown = { explicit_max_ttl: long, period: long, creation_ttl: 2_764_800 }
    expect((await call(made.token, 'GET', 'lookup-self')).outcome).toMatchObject(shown)
  })

  test('revoking works by token, by accessor and on oneself', async () => {
    const [a, b, c] = [
      await create(world.rootToken, { policies: ['app'] }),
      await create(world.rootToken, { policies: ['app'] }),
      await create(world.rootToken, { policies: ['app'] }),
    ]
    expect((await call(a.token, 'POST', 'revoke-self')).outcome).toBeUndefined()
    expect((await call(world.rootToken, 'POST', 'revoke', { token: b.token })).outcome).toBeUndefined()
    expect((await call(world.rootToken, 'POST', 'revoke-accessor', { accessor: c.accessor })).outcome).toBeUndefined()
    for (const { token } of [a, b, c]) expect(await world.node.authenticator.authenticate(token)).toBeUndefined()
    expect((await call(world.rootToken, 'POST', 'revoke', { token: b.token })).outcome).toBeUndefined()
    const gone = await call(world.rootToken, 'POST', 'revoke-accessor', { accessor: c.accessor })
    expect([gone.outcome, gone.warnings]).toEqual([new Answer({}), ['No token found with this accessor']])
    expect(await refusal(call(world.rootToken, 'POST', 'lookup', { token: b.token }))).toEqual([403, 'bad token'])
    expect(await refusal(call(world.rootToken, 'POST', 'lookup-accessor', { accessor: c.accessor }))).toEqual([
      400,
      '1 error occurred:\n\t* invalid accessor\n\n',
    ])
    expect(await refusal(call(world.rootToken, 'POST', 'revoke'))).toEqual([400, 'missing token ID'])
  })

  test('a token’s creator grants only its own policies; sudo on create grants more, never root', async () => {
    const maker = await create(world.rootToken, { policies: ['maker'] })
    expect((await create(maker.token, {})).auth?.policies).toEqual(['default', 'maker'])
    expect(await refusal(create(maker.token, { policies: ['app'] }))).toEqual([
      400,
      'child policies must be subset of parent',
    ])
    expect(await refusal(create(maker.token, { no_parent: true }))).toEqual([
      400,
      'root or sudo privileges required to create orphan token',
    ])
    const chief = await create(world.rootToken, { policies: ['chief'] })
    const orphan = await create(chief.token, { policies: ['app'], no_parent: true, id: 'chosen-by-chief' })
    expect(orphan.auth).toMatchObject({ client_token: 'chosen-by-chief', orphan: true, policies: ['app', 'default'] })
    expect(await refusal(create(chief.token, { policies: ['root'] }))).toEqual([
      400,
      'root tokens may not be created without parent token being root',
    ])
    await world.node.policies.remove('chief')
    expect(await refusal(create(chief.token, { policies: ['app'] }))).toEqual([
      400,
      'child policies must be subset of parent',
    ])
  })

  test('create-orphan needs its own rule and no sudo', async () => {
    await world.node.policies.write('freer', 'path "auth/token/create-orphan" { capabilities = ["update"] }')
    const freer = await create(world.rootToken, { policies: ['freer'] })
    const { auth } = await call(freer.token, 'POST', 'create-orphan', {})
    expect(auth).toMatchObject({ orphan: true, policies: ['default', 'freer'] })
    expect(await refusal(call(freer.token, 'POST', 'create-orphan', { period: 60 }))).toEqual([
      400,
      'root or sudo privileges required to create periodic token',
    ])
    await call(freer.token, 'POST', 'revoke-self')
    expect(await world.node.authenticator.authenticate(String(auth?.client_token))).toBeDefined()
  })

  test('renewing works by token and by accessor, which does not learn the token', async () => {
    const { token, accessor } = await create(world.rootToken, { policies: ['app'], ttl: 600 })
    const byToken = (await call(world.rootToken, 'POST', 'renew', { token, increment: 60 })).auth
    expect(byToken).toMatchObject({ client_token: token, accessor, lease_duration: 60 })
    const byAccessor = (await call(world.rootToken, 'POST', 'renew-accessor', { accessor, increment: 90 })).auth
    expect(byAccessor).toMatchObject({ client_token: '', accessor, lease_duration: 90 })
    expect(await refusal(call(world.rootToken, 'POST', 'renew'))).toEqual([400, 'missing token ID'])
    expect(await refusal(call(world.rootToken, 'POST', 'renew', { token: 'x' }))).toEqual([400, 'token not found'])
    expect(await refusal(call(world.rootToken, 'POST', 'renew-accessor'))).toEqual([400, 'missing accessor'])
    expect(await refusal(call(world.rootToken, 'POST', 'renew-accessor', { accessor: 'x' }))).toEqual([
      400,
      '1 error occurred:\n\t* invalid accessor\n\n',
    ])
    const fixed = await create(world.rootToken, { policies: ['app'], renewable: false })
    expect(await refusal(call(world.rootToken, 'POST', 'renew', { token: fixed.token }))).toEqual([
      400,
      'lease is not renewable',
    ])
  })

  test('a renewal passes neither the explicit maximum nor, without one, the longest life; a period has no end', async () => {
    const create600 = (more: object) => create(world.rootToken, { policies: ['app'], ttl: 600, ...more })
    const [plain, bound, periodic] = [
      await create600({}),
      await create600({ explicit_max_ttl: 900 }),
      await create600({ period: 600, ttl: 0 }),
    ]
    const renew = async (token: string, increment: number) =>
      (await call(world.rootToken, 'POST', 'renew', { token, increment })).auth?.lease_duration
    expect(await renew(plain.token, 1e9)).toBeLessThanOrEqual(2_764_800)
    expect(await renew(bound.token, 1e9)).toBeLessThanOrEqual(900)
    expect(await renew(periodic.token, 1e9)).toBe(600)
    world.clock.ahead += 500_000
    expect(await renew(bound.token, 0)).toBeLessThanOrEqual(400)
    expect(await renew(periodic.token, 1)).toBe(600)
    world.clock.ahead += 401_000
    expect(await refusal(call(world.rootToken, 'POST', 'renew', { token: bound.token }))).toEqual([
      400,
      'token not found',
    ])
    expect(await renew(periodic.token, 0)).toBe(600)
  })

  test('a token of limited uses counts each request, and makes no other, not even as its last', async () => {
    const { token, auth } = await create(world.rootToken, { policies: ['chief'], num_uses: 3 })
    expect(auth).toMatchObject({ num_uses: 3 })
    expect((await call(token, 'GET', 'lookup-self')).outcome).toMatchObject({ num_uses: 2, id: token })
    expect(await refusal(create(token, {}))).toEqual([400, 'restricted use token cannot generate child tokens'])
    const last = await world.node.authenticator.authenticate(token)
    expect(last?.end).toBeDefined()
    expect(await world.node.authenticator.authenticate(token)).toBeUndefined()
    const [one] = [await create(world.rootToken, { policies: ['chief'], num_uses: 1 })]
    expect(await refusal(create(one.token, { no_parent: true }))).toEqual([
      400,
      'restricted use token cannot generate child tokens',
    ])
    const other = await create(world.rootToken, { num_uses: 1, policies: ['app'] })
    expect((await call(other.token, 'POST', 'lookup')).outcome).toMatchObject({ num_uses: 0, id: other.token })
  })

  test('revoke-orphan revokes one and frees its children', async () => {
    const parent = await create(world.rootToken, { policies: ['maker'] })
    const child = await create(parent.token, {})
    expect((await call(world.rootToken, 'POST', 'revoke-orphan', { token: parent.token })).outcome).toBeUndefined()
    expect(await world.node.authenticator.authenticate(parent.token)).toBeUndefined()
    expect((await call(child.token, 'GET', 'lookup-self')).outcome).toMatchObject({ orphan: true })
    expect(await refusal(call(world.rootToken, 'POST', 'revoke-orphan', { token: parent.token }))).toEqual([
      400,
      'token to revoke not found',
    ])
    expect(await refusal(call(world.rootToken, 'POST', 'revoke-orphan'))).toEqual([400, 'missing token ID'])
  })

  test('accessors are listed in order, page by page, without those that ended', async () => {
    const { accessor } = await create(world.rootToken, { policies: ['app'], ttl: 10 })
    const list = async (body: object = {}) => {
      const { outcome } = await call(world.rootToken, 'LIST', 'accessors', { ...body })
      return (outcome as { keys: string[] }).keys
    }
    const all = await list()
    expect(all).toContain(accessor)
    expect(all).toEqual(all.toSorted())
    expect(await list({ limit: 2 })).toEqual(all.slice(0, 2))
    expect(await list({ after: all[1], limit: 2 })).toEqual(all.slice(2, 4))
    world.clock.ahead += 11_000
    expect(await list()).not.toContain(accessor)
  })

  test('tidy answers that it has begun', async () => {
    const { outcome, warnings } = await call(world.rootToken, 'POST', 'tidy')
    expect(outcome).toEqual(new Answer({ status: 202 }))
    expect(warnings).toEqual([expect.stringContaining('Tidy operation successfully started')])
  })

  test('a child of a token is refused with it', async () => {
    const parent = await create(world.rootToken, { policies: ['maker'] })
    const child = await create(parent.token, {})
    const orphan = await create(world.rootToken, { policies: ['app'], no_parent: true })
    await call(parent.token, 'POST', 'revoke-self')
    expect(await world.node.authenticator.authenticate(child.token)).toBeUndefined()
    expect(await world.node.authenticator.authenticate(orphan.token)).toBeDefined()
  })
})
