import { describe, expect, test } from 'vitest'
import { type CrlSettings, defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import type { CrlRow } from '../../../src/engines/pki/crl/tables.ts'
import { dueKind, isLate } from '../../../src/engines/pki/publication/due.ts'

const hour = 3_600_000
const start = 1_800_000_000_000

const list = (more: Partial<CrlRow> = {}) =>
  ({ thisUpdate: start, nextUpdate: start + 72 * hour, covered: { here: 5 }, ...more }) as CrlRow

const settings = (more: Partial<CrlSettings> = {}): CrlSettings => ({ ...defaultCrlSettings, ...more })
const auto = settings({ autoRebuild: true })
const deltas = settings({ autoRebuild: true, enableDelta: true })
const both = { complete: list(), delta: list() }
const none = { complete: undefined, delta: undefined }

describe('what is due', () => {
  test.each([
    ['nothing of a list that has everything', settings(), both, { here: 5 }, hour, undefined],
    ['a list that is not there', settings(), none, {}, 0, 'complete'],
    ['a list that is not there, of a mount that disables lists', settings({ disable: true }), none, {}, 0, 'complete'],
    ['a list in its grace period', auto, both, { here: 5 }, 61 * hour, 'complete'],
    ['nothing of a list before its grace period', auto, both, { here: 9 }, 59 * hour, undefined],
    ['a list that expires, also without auto_rebuild', settings(), both, { here: 5 }, 61 * hour, 'complete'],
    ['without auto_rebuild a list that lacks a revocation', settings(), both, { here: 6 }, 0, 'complete'],
    ['without auto_rebuild a list that knows nothing of a site', settings(), both, { there: 1 }, 0, 'complete'],
    [
      'nothing that lacks a revocation, while lists are disabled',
      settings({ disable: true }),
      both,
      { here: 6 },
      0,
      undefined,
    ],
    ['a delta after its interval, when something was revoked', deltas, both, { here: 6 }, hour / 4, 'delta'],
    ['no delta before its interval', deltas, both, { here: 6 }, hour / 5, undefined],
    ['no delta when nothing was revoked', deltas, both, { here: 5 }, hour, undefined],
    ['no delta where there are none', auto, both, { here: 6 }, hour, undefined],
    [
      'a list older than the end of the unified one at its path',
      settings({ localSince: start + 1999 }),
      both,
      {},
      0,
      'complete',
    ],
    ['a list of that second, whichever came first', settings({ localSince: start + 1 }), both, {}, 0, 'complete'],
    ['nothing of a list of a later second', settings({ localSince: start - 1 }), both, {}, 0, undefined],
    ['a delta that is not there', deltas, { complete: list(), delta: undefined }, { here: 5 }, 0, 'delta'],
  ] as const)('is %s', (_title, given, standing, last, elapsed, due) => {
    expect(dueKind(given, standing, last, start + elapsed)).toBe(due)
  })

  test('is at most half of a list’s life before its end, where nobody compared the two', () => {
    const short = { complete: list({ nextUpdate: start + hour }), delta: list() }
    const given = settings({ expiry: '1h' })
    expect(dueKind(given, short, { here: 5 }, start + 0.49 * hour)).toBeUndefined()
    expect(dueKind(given, short, { here: 5 }, start + 0.51 * hour)).toBe('complete')
  })
})

describe('a list is late', () => {
  test.each([
    [60, false],
    [60.2, true],
    [80, true],
  ])('after %f hours of 72 with a grace period of 12: %j', (hours, late) => {
    expect(isLate(auto, list(), start + hours * hour)).toBe(late)
  })
})
