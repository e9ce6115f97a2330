import { describe, expect, test } from 'vitest'
import { afterLoss, noStarts, type Timing, type Vitals, verdict, wasSuspended } from '../../src/supervisor/policy.ts'

const timing: Timing = {
  silenceMilliseconds: 5000,
  startMilliseconds: 60_000,
  drainMilliseconds: 30_000,
  rssLimitBytes: 1000,
  settleMilliseconds: 60_000,
  tickMilliseconds: 500,
}
const vitals = (changes: Partial<Vitals>): Vitals => ({
  phase: 'ready',
  phaseSince: 0,
  lastBeat: 0,
  rssBytes: 0,
  ...changes,
})

describe('a worker', () => {
  test('is lost after 5 s of silence', () => {
    expect(verdict(vitals({ lastBeat: 1000 }), 6000, timing)).toBe('well')
    expect(verdict(vitals({ lastBeat: 1000 }), 6001, timing)).toBe('silent')
    expect(verdict(vitals({ lastBeat: 1000, phase: 'leaving' }), 6001, timing)).toBe('silent')
  })

  test('may be silent while it starts, and not for ever', () => {
    expect(verdict(vitals({ phase: 'starting' }), 60_000, timing)).toBe('well')
    expect(verdict(vitals({ phase: 'starting', lastBeat: 60_000 }), 60_001, timing)).toBe('overdue')
  })

  test('is killed when it has not drained by the deadline', () => {
    expect(verdict(vitals({ phase: 'leaving', lastBeat: 30_001 }), 30_001, timing)).toBe('overdue')
  })

  test('is oversized above its memory limit once it has settled', () => {
    expect(verdict(vitals({ rssBytes: 1001, lastBeat: 60_000 }), 60_000, timing)).toBe('well')
    expect(verdict(vitals({ rssBytes: 1001, lastBeat: 60_001 }), 60_001, timing)).toBe('oversized')
    expect(verdict(vitals({ rssBytes: 1000, lastBeat: 60_001 }), 60_001, timing)).toBe('well')
  })
})

test('a supervisor that was stopped itself blames nobody', () => {
  expect(wasSuspended(2000, timing)).toBe(false)
  expect(wasSuspended(2001, timing)).toBe(true)
})

describe('after a loss', () => {
  const crash = { phase: 'starting', phaseSince: 0, failure: undefined } as const
  const served = { ...noStarts, served: true }

  test('early deaths make the next start wait twice as long each time, up to 30 s', () => {
    let starts = served
    const waits: number[] = []
    for (let deaths = 0; deaths < 12; deaths++) {
      starts = afterLoss(starts, crash, 0)
      waits.push(starts.notBefore)
    }
    expect(waits).toEqual([200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000, 30_000])
    expect(starts.hopeless).toBe(false)
  })

  test('a worker that had served for long is replaced at once', () => {
    const starts = afterLoss({ ...served, earlyDeaths: 5 }, { ...crash, phase: 'ready' }, 30_000)
    expect(starts).toMatchObject({ earlyDeaths: 0, notBefore: 30_000 })
  })

  test('the first start may die twice without a word, and not once with a reason', () => {
    const twice = afterLoss(afterLoss(noStarts, crash, 0), crash, 0)
    expect(twice.hopeless).toBe(false)
    expect(afterLoss(twice, crash, 0).hopeless).toBe(true)
    expect(afterLoss(noStarts, { ...crash, failure: { kind: 'other' } }, 0).hopeless).toBe(true)
  })

  test('a refused PIN stays refused whatever else happens', () => {
    const refused = afterLoss(served, { ...crash, failure: { kind: 'pin' } }, 0)
    expect(refused).toMatchObject({ pinRefused: true, hopeless: false })
    expect(afterLoss(refused, crash, 0).pinRefused).toBe(true)
  })
})
