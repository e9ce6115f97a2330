import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Member, plan, type Situation } from '../../src/supervisor/plan.ts'

const situation = (changes: Partial<Situation>): Situation => ({
  members: [],
  wanted: 2,
  mayStart: true,
  mayStandIn: true,
  stopping: false,
  ...changes,
})
const worker = (id: number, changes: Partial<Member> = {}): Member => ({
  id,
  role: 'worker',
  phase: 'ready',
  fresh: true,
  ...changes,
})
const standIn = (id: number): Member => worker(id, { role: 'standIn' })

describe('a plan', () => {
  test('starts workers one at a time', () => {
    expect(plan(situation({ mayStandIn: false }))).toEqual([{ do: 'start', role: 'worker' }])
    expect(plan(situation({ members: [worker(1, { phase: 'starting' })], mayStandIn: false }))).toEqual([])
    expect(plan(situation({ members: [worker(1)] }))).toEqual([{ do: 'start', role: 'worker' }])
    expect(plan(situation({ members: [worker(1), worker(2)] }))).toEqual([])
  })

  test('replaces a stale worker only after a fresh one serves', () => {
    const stale = worker(1, { fresh: false })
    expect(plan(situation({ wanted: 1, members: [stale] }))).toEqual([{ do: 'start', role: 'worker' }])
    expect(plan(situation({ wanted: 1, members: [stale, worker(2, { phase: 'starting' })] }))).toEqual([])
    expect(plan(situation({ wanted: 1, members: [stale, worker(2)] }))).toEqual([{ do: 'drain', id: 1 }])
    expect(plan(situation({ wanted: 1, members: [stale], mayStart: false }))).toEqual([])
  })

  test('lets the stand-in serve while no worker does, and only then', () => {
    const start = { do: 'start', role: 'standIn' }
    expect(plan(situation({ mayStart: false }))).toEqual([start])
    expect(plan(situation({ members: [worker(1, { phase: 'starting' })] }))).toEqual([start])
    expect(plan(situation({ members: [worker(1, { phase: 'leaving' })], mayStart: false }))).toEqual([start])
    expect(plan(situation({ members: [standIn(9)], mayStart: false }))).toEqual([])
    expect(plan(situation({ members: [worker(1), worker(2), standIn(9)] }))).toEqual([{ do: 'drain', id: 9 }])
    expect(plan(situation({ mayStart: false, mayStandIn: false }))).toEqual([])
  })

  test('drains everything when stopping and starts nothing', () => {
    const members = [worker(1), worker(2, { phase: 'starting' }), worker(3, { phase: 'leaving' }), standIn(4)]
    expect(plan(situation({ members, stopping: true })).map((step) => 'id' in step && step.id)).toEqual([1, 2, 4])
  })

  test('leads from any situation to as many fresh workers as wanted, and no step takes the last one away', () => {
    const member = fc.record({
      role: fc.constantFrom('worker' as const, 'worker' as const, 'standIn' as const),
      phase: fc.constantFrom('starting' as const, 'ready' as const, 'leaving' as const),
      fresh: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(member, { maxLength: 6 }), fc.integer({ min: 1, max: 4 }), (some, wanted) => {
        let members: Member[] = some.map((fields, id) => ({ ...fields, id }))
        let next = members.length
        const serving = () => members.filter((one) => one.role === 'worker' && one.phase === 'ready').length
        for (let round = 0; round < 40; round++) {
          const before = serving()
          for (const step of plan(situation({ members, wanted }))) {
            if (step.do === 'drain')
              members = members.map((one) => (one.id === step.id ? { ...one, phase: 'leaving' } : one))
            else members = [...members, { id: next++, role: step.role, phase: 'starting', fresh: true }]
          }
          expect(serving()).toBeGreaterThanOrEqual(Math.min(before, wanted))
          expect(members.filter((one) => one.role === 'standIn' && one.phase !== 'leaving').length).toBeLessThanOrEqual(
            Math.max(1, some.filter((one) => one.role === 'standIn').length),
          )
          members = members.filter((one) => one.phase !== 'leaving')
          members = members.map((one) => ({ ...one, phase: 'ready' }))
        }
        const workers = members.filter((one) => one.role === 'worker')
        expect(workers.filter((one) => one.fresh).length).toBeGreaterThanOrEqual(wanted)
        expect(workers.every((one) => one.fresh)).toBe(true)
        expect(members.some((one) => one.role === 'standIn')).toBe(false)
      }),
    )
  })
})
