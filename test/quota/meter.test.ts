import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { quotaConfigOf } from '../../src/quota/config.ts'
import { counted, Meter, RateLimited } from '../../src/quota/meter.ts'
import type { RateLimit } from '../../src/quota/ratelimit.ts'

const limit: RateLimit = { name: 'q', path: '', rate: 3, intervalSeconds: 600, blockSeconds: 0, groupBy: 'ip' }

const violations = { value: 0 }

/** A function that counts a request from an address and says whether it is served. */
function asker(groupBy: RateLimit['groupBy']) {
  const options = { quota: counted({ ...limit, groupBy }), config: quotaConfigOf(new Map()), clock: systemClock }
  return (address: string, hasCredential = false): boolean => {
    const meter = new Meter({ path: 'transit/keys/a', address, hasCredential }, { ...options, workers: 1, violations })
    try {
      meter.begin()
      meter.unknown()
      return true
    } catch (error) {
      expect(error).toBeInstanceOf(RateLimited)
      return false
    }
  }
}

test.each(['ip', 'token'] as const)('by %s a stranger is not another one at each address of a /64', (groupBy) => {
  const ask = asker(groupBy)
  const near = ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:ffff::3', '2001:db8:1:2:a:b:c:d']
  expect(near.map((address) => ask(address))).toEqual([true, true, true, false])
  expect([ask('2001:db8:1:3::1'), ask('192.0.2.1'), ask('::ffff:192.0.2.1')]).toEqual([true, true, true])
})

test('a request counts once, whatever comes of it', () => {
  const ask = asker('ip')
  expect([ask('192.0.2.1', true), ask('192.0.2.1'), ask('192.0.2.1', true), ask('192.0.2.1')]).toEqual([
    ...[true, true, true],
    false,
  ])
})
