import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SparingWarnings } from '../../src/log/sparing.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function warnings() {
  const lines: unknown[] = []
  const sparing = new SparingWarnings({ warn: (...line: unknown[]) => void lines.push(line) } as never, 'refused')
  const warn = (from: number, to: number) => {
    for (let each = from; each < to; each++) sparing.warn({ each })
  }
  return { lines, warn }
}

const shown = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => [{ each: from + i }, 'refused'])

test('of many warnings the first twenty are lines, and the others one line with their number', () => {
  const { lines, warn } = warnings()
  warn(0, 4000)
  expect(lines).toEqual(shown(0, 20))
  vi.advanceTimersByTime(1000)
  expect(lines.slice(20)).toEqual([[{ times: 3980 }, 'refused, more often than the log shows']])
  warn(4000, 4025)
  expect(lines.slice(21)).toEqual(shown(4000, 4020))
})

test('few warnings are lines each, however long they go on', () => {
  const { lines, warn } = warnings()
  for (let second = 0; second < 3; second++) {
    warn(20 * second, 20 * second + 20)
    vi.advanceTimersByTime(1000)
  }
  expect(lines).toEqual(shown(0, 60))
  expect(vi.getTimerCount()).toBe(0)
})
