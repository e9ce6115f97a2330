import { expect, test, vi } from 'vitest'
import type { Snapshot, WorkerSnapshots } from '../../src/metrics/snapshot.ts'
import { merge } from '../../src/metrics/snapshot.ts'
import { Gathering } from '../../src/supervisor/gathering.ts'
import type { ToWorker } from '../../src/supervisor/messages.ts'

/** A worker that only notes its messages. */
function party() {
  const answers: WorkerSnapshots[] = []
  let sequence = 0
  return {
    answers,
    get sequence() {
      return sequence
    },
    send(message: ToWorker) {
      if (message.type === 'measure') sequence = message.sequence
      if (message.type === 'gathered') answers.push(message.gathered)
    },
  }
}
const given = () => ({ gathering: new Gathering<ReturnType<typeof party>>(), a: party(), b: party() })

const served = (value: number): Snapshot => [
  { name: 'served', help: 'Requests.', labels: {}, kind: 'counter', value },
  { name: 'now', help: 'Requests.', labels: {}, kind: 'gauge', value: 1 },
]
const total = (name: string, gathered: WorkerSnapshots | undefined) => {
  const series = merge(gathered?.snapshots ?? []).find((one) => one.name === name)
  return series?.kind === 'timing' ? undefined : series?.value
}

test('whoever asked gets what every worker has measured', () => {
  const { gathering, a, b } = given()
  gathering.request(a, [a, b])
  gathering.measured(b, b.sequence, served(2))
  expect(a.answers).toEqual([])
  gathering.measured(a, a.sequence, served(3))
  expect(total('served', a.answers[0])).toBe(5)
  expect(a.answers[0]?.missing).toBe(0)
  expect(b.answers).toEqual([])
})

test('totals of a worker that has ended still count, its gauges do not', () => {
  const { gathering, a, b } = given()
  gathering.request(a, [a, b])
  gathering.measured(a, a.sequence, served(3))
  gathering.measured(b, b.sequence, served(2))
  gathering.gone(b)
  gathering.request(a, [a])
  gathering.measured(a, a.sequence, served(4))
  expect(total('served', a.answers[1])).toBe(6)
  expect(total('now', a.answers[1])).toBe(1)
})

test('a worker that ends before it answers holds nobody up', () => {
  const { gathering, a, b } = given()
  gathering.request(a, [a, b])
  gathering.measured(a, a.sequence, served(3))
  gathering.gone(b)
  expect(total('served', a.answers[0])).toBe(3)
})

test('a worker that has answered and ends while another is asked counts once', () => {
  const { gathering, a, b } = given()
  gathering.request(a, [a, b])
  gathering.measured(b, b.sequence, served(2))
  gathering.gone(b)
  gathering.measured(a, a.sequence, served(3))
  expect(total('served', a.answers[0])).toBe(5)
  expect(total('now', a.answers[0])).toBe(1)
})

test('a worker that is silent for a second is left out with its older totals, and counted as missing', () => {
  vi.useFakeTimers()
  try {
    const { gathering, a, b } = given()
    gathering.request(b, [a, b])
    for (const one of [a, b]) gathering.measured(one, one.sequence, served(2))
    gathering.request(b, [a, b])
    gathering.measured(b, b.sequence, served(5))
    vi.advanceTimersByTime(999)
    expect(b.answers).toHaveLength(1)
    vi.advanceTimersByTime(2)
    expect(b.answers[1]?.missing).toBe(1)
    expect(total('served', b.answers[1])).toBe(7)
    expect(total('now', b.answers[1])).toBe(1)
    gathering.measured(a, a.sequence, served(9))
    expect(b.answers).toHaveLength(2)
  } finally {
    vi.useRealTimers()
  }
})
