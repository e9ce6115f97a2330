import { describe, expect, test } from 'vitest'
import { newLifetime, renewedUntil, systemTtlSeconds } from '../../src/auth/lifetime.ts'
import { grant as granted, type TokenCreator, type TokenRequest } from '../../src/auth/methods/token/grant.ts'
import { spentUses, type TokenRow } from '../../src/auth/token.ts'

const parent = (fields: Partial<TokenRow>): TokenRow => ({
  id: 'parent',
  namespace: '',
  mount: '',
  rev: 1,
  epoch: 1,
  hash: Buffer.alloc(32),
  accessor: 'a',
  parent: null,
  path: 'auth/token/create',
  policies: ['app', 'default'],
  meta: null,
  displayName: 'token',
  type: 'service',
  orphan: true,
  renewable: true,
  ttlSeconds: 60,
  explicitMaxTtlSeconds: 0,
  periodSeconds: 0,
  numUses: 0,
  createdAt: 0,
  expiresAt: 60_000,
  lastRenewalAt: null,
  state: 'active',
  ...fields,
})

const grant = (request: TokenRequest, from: TokenRow, privileged: boolean, kind: TokenCreator['kind'] = 'child') =>
  granted(request, { parent: from, privileged, kind })
const root = parent({ policies: ['root'], expiresAt: null, ttlSeconds: 0 })
const policies = (request: TokenRequest, from: TokenRow, privileged = false) =>
  grant(request, from, privileged).token.policies

describe('a child token', () => {
  test('has its parent’s policies or fewer, unless the parent has sudo', () => {
    expect(policies({}, parent({}))).toEqual(['app', 'default'])
    expect(policies({ policies: ['APP '] }, parent({}))).toEqual(['app', 'default'])
    expect(policies({ policies: ['app'], no_default_policy: true }, parent({}))).toEqual(['app'])
    expect(policies({ policies: ['app'] }, parent({ policies: ['app'] }))).toEqual(['app'])
    expect(() => policies({ policies: ['app', 'other'] }, parent({}))).toThrow(
      'child policies must be subset of parent',
    )
    expect(() => policies({ policies: ['root'] }, parent({}))).toThrow('child policies must be subset of parent')
    expect(policies({ policies: ['other'] }, parent({}), true)).toEqual(['default', 'other'])
  })

  test('has no policy of its parent’s when it asks for nameless ones', () => {
    expect(policies({ policies: [''] }, root, true)).toEqual(['default'])
    expect(policies({ policies: [' ', ''] }, parent({}))).toEqual(['default'])
    expect(policies({ policies: [''] }, parent({ policies: ['app'] }))).toEqual([])
    expect(policies({ policies: [''], no_default_policy: true }, root, true)).toEqual([])
  })

  test('is root only under root, and then nothing else', () => {
    expect(() => policies({ policies: ['Root'] }, parent({}), true)).toThrow(
      'root tokens may not be created without parent token being root',
    )
    expect(policies({ policies: ['app', 'root'] }, root, true)).toEqual(['root'])
    expect(policies({}, root, true)).toEqual(['root'])
    expect(policies({ policies: ['app'] }, root, true)).toEqual(['app', 'default'])
  })

  test('lives for ever only as root under a root that does', () => {
    expect(grant({}, root, true).token).toMatchObject({ ttlSeconds: 0, renewable: false, parent: root })
    expect(grant({ ttl: 60 }, root, true).token).toMatchObject({ ttlSeconds: 60, renewable: true })
    const expiring = parent({ policies: ['root'] })
    expect(() => grant({}, expiring, true)).toThrow('expiring root tokens cannot create non-expiring root tokens')
    expect(grant({ policies: ['app'] }, root, true).token.ttlSeconds).toBe(systemTtlSeconds)
  })

  test('is an orphan, periodic or of a chosen text only by privilege', () => {
    for (const [request, text] of [
      [{ id: 'x' }, 'specify token id'],
      [{ no_parent: true }, 'create orphan token'],
      [{ period: 60 }, 'create periodic token'],
    ] as const) {
      expect(() => grant(request, parent({}), false)).toThrow(`root or sudo privileges required to ${text}`)
      expect(() => grant(request, parent({}), true)).not.toThrow()
    }
    expect(grant({ no_parent: true }, root, true).token.parent).toBeNull()
  })

  test('of a kind not built is refused, never made as another', () => {
    expect(() => grant({ type: 'batch' }, root, true)).toThrow('batch')
    expect(() => grant({ type: 'x' }, root, true)).toThrow('type')
    expect(() => grant({ entity_alias: 'x' }, root, true)).toThrow('entity_alias')
  })

  test('loses "default" by no_default_policy, asked for or inherited', () => {
    expect(policies({ no_default_policy: true }, parent({}))).toEqual(['app'])
    expect(policies({ policies: ['app', 'default'], no_default_policy: true }, parent({}))).toEqual(['app'])
    expect(policies({ policies: ['default'], no_default_policy: true }, root, true)).toEqual([])
  })

  test('is an orphan without privilege by the path for orphans alone', () => {
    expect(grant({}, parent({}), false, 'orphan').token.parent).toBeNull()
    expect(() => grant({ no_parent: true }, parent({}), false, 'orphan')).toThrow('sudo privileges required')
  })

  test('has the requested number of uses, never a negative one, and cannot come from a parent whose uses are counted', () => {
    expect(grant({ num_uses: 3 }, root, true).token.numUses).toBe(3)
    expect(grant({}, root, true).token.numUses).toBe(0)
    expect(() => grant({ num_uses: -1 }, root, true)).toThrow('number of uses cannot be negative')
    for (const numUses of [3, 1, spentUses])
      for (const kind of ['child', 'orphan'] as const)
        expect(() => grant({}, parent({ numUses }), true, kind)).toThrow(
          'restricted use token cannot generate child tokens',
        )
  })

  test('shows its name as the reference does', () => {
    const name = (display_name?: string) =>
      grant(display_name === undefined ? {} : { display_name }, root, true).token.displayName
    expect([name(), name('foo bar'), name('a.b!')]).toEqual(['token', 'token-foo-bar', 'token-a-b'])
  })
})

describe('a lifetime', () => {
  const life = (ttlSeconds = 0, explicitMaxTtlSeconds = 0, periodSeconds = 0) => ({
    ttlSeconds,
    explicitMaxTtlSeconds,
    periodSeconds,
  })

  test('is the default, and at most that of the system or the explicit maximum, with a warning', () => {
    expect(newLifetime(life(), false)).toMatchObject({ ttlSeconds: systemTtlSeconds, warnings: [] })
    expect(newLifetime(life(), true).ttlSeconds).toBe(0)
    expect(newLifetime(life(0, 100), false)).toMatchObject({ ttlSeconds: 100, warnings: [] })
    expect(newLifetime(life(0, 100), true).ttlSeconds).toBe(100)
    expect(newLifetime(life(200, 100), false)).toMatchObject({
      ttlSeconds: 100,
      warnings: ['TTL of "3m20s" exceeded the effective max_ttl of "1m40s"; TTL value is capped accordingly'],
    })
    expect(newLifetime(life(systemTtlSeconds + 1), false).warnings).toEqual([
      'TTL of "768h0m1s" exceeded the effective max_ttl of "768h0m0s"; TTL value is capped accordingly',
    ])
    expect(newLifetime(life(5, 0, 600), false)).toMatchObject({ ttlSeconds: 600, periodSeconds: 600 })
  })

  test('keeps an explicit maximum and a period above the system’s, which bounds the ttl', () => {
    const [long, longer] = [2 * systemTtlSeconds, 3 * systemTtlSeconds]
    const kept = { ttlSeconds: systemTtlSeconds, explicitMaxTtlSeconds: long, periodSeconds: 0, warnings: [] }
    expect(newLifetime(life(0, long), false)).toEqual(kept)
    const text = 'TTL of "2304h0m0s" exceeded the effective max_ttl of "768h0m0s"; TTL value is capped accordingly'
    expect(newLifetime(life(longer, long), false)).toEqual({ ...kept, warnings: [text] })
    const period =
      'Period of "1536h0m0s" exceeded the effective max_ttl of "768h0m0s"; Period value is capped accordingly'
    expect(newLifetime(life(5, 0, long), false)).toEqual({ ...life(systemTtlSeconds, 0, long), warnings: [period] })
    const short = 'Period of "1536h0m0s" exceeded the effective max_ttl of "1m40s"; Period value is capped accordingly'
    expect(newLifetime(life(5, 100, long), false)).toEqual({ ...life(100, 100, long), warnings: [short] })
    expect(newLifetime(life(0, long), true)).toEqual({ ...life(long, long), warnings: [] })
    expect(newLifetime(life(0, 0, long), true).ttlSeconds).toBe(systemTtlSeconds)
  })

  const made = { createdAt: 1_000_000, expiresAt: null, lastRenewalAt: null }
  const at = (seconds: number) => made.createdAt + seconds * 1000

  test('renewed stays within the longest life counted from creation, unless it is periodic', () => {
    expect(renewedUntil({ ...life(60), ...made }, 0, at(30)).expiresAt).toBe(at(90))
    expect(renewedUntil({ ...life(60), ...made }, 10, at(30)).expiresAt).toBe(at(40))
    expect(() => renewedUntil({ ...life(60, 80), ...made }, 10, at(80))).toThrow('past the max TTL, cannot renew')
    expect(renewedUntil({ ...life(60, 80), ...made }, 0, at(30))).toMatchObject({
      expiresAt: at(80),
      warnings: [expect.stringContaining('capped')],
    })
    expect(renewedUntil({ ...life(60), ...made }, 2 * systemTtlSeconds, at(30)).expiresAt).toBe(at(systemTtlSeconds))
    expect(renewedUntil({ ...life(60, 0, 60), ...made }, 5, at(9_000_000)).expiresAt).toBe(at(9_000_060))
    expect(renewedUntil({ ...life(60, 100, 60), ...made }, 5, at(90)).expiresAt).toBe(at(100))
  })
  test('renewed without increment gets the life that the last renewal granted, even if less than requested', () => {
    const renewed = { ...life(60, 100), ...made, expiresAt: at(50), lastRenewalAt: at(30) }
    expect(renewedUntil(renewed, 0, at(40)).expiresAt).toBe(at(60))
    expect(renewedUntil(renewed, 25, at(40)).expiresAt).toBe(at(65))
    expect(renewedUntil({ ...renewed, lastRenewalAt: null }, 0, at(40)).expiresAt).toBe(at(100))
    expect(renewedUntil({ ...renewed, periodSeconds: 45 }, 0, at(40)).expiresAt).toBe(at(85))
  })

  test('renewed is bound by the system’s maximum where its own is longer', () => {
    const long = { ...life(60, 2 * systemTtlSeconds), ...made }
    expect(renewedUntil(long, 2 * systemTtlSeconds, at(30)).expiresAt).toBe(at(systemTtlSeconds))
    const periodic = { ...life(60, 0, 2 * systemTtlSeconds), ...made }
    expect(renewedUntil(periodic, 5, at(9_000_000))).toEqual({
      expiresAt: at(9_000_000 + systemTtlSeconds),
      warnings: [expect.stringMatching(/^Period of "1536h0m0s" exceeded the effective max_ttl of "768h0m0s"/)],
    })
  })
})
