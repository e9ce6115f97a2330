import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Inquiry } from '../../src/supervisor/inquiry.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function given() {
  const put = vi.fn()
  return { put, inquiry: new Inquiry<number>(put) }
}

test('callers that ask while a question is under way share its answer; a later one asks anew', async () => {
  const { put, inquiry } = given()
  const both = [inquiry.ask(), inquiry.ask()]
  expect(put).toHaveBeenCalledTimes(1)
  inquiry.answered(1)
  expect(await Promise.all(both)).toEqual([1, 1])
  const later = inquiry.ask()
  inquiry.answered(2)
  expect(await later).toBe(2)
  expect(put).toHaveBeenCalledTimes(2)
})

test('a supervisor that does not know the question holds nobody up, and is asked again', async () => {
  const { put, inquiry } = given()
  const refused = expect(inquiry.ask()).rejects.toMatchObject({ status: 503 })
  vi.advanceTimersByTime(3001)
  await refused
  const again = inquiry.ask()
  vi.advanceTimersByTime(2900)
  inquiry.answered(3)
  expect(await again).toBe(3)
  expect(put).toHaveBeenCalledTimes(2)
})

test('an answer to nobody is dropped', async () => {
  const { inquiry } = given()
  inquiry.answered(1)
  const asked = inquiry.ask()
  inquiry.answered(2)
  expect(await asked).toBe(2)
})

test('a late answer is none to the next question; one without a number is', async () => {
  const { put, inquiry } = given()
  const refused = expect(inquiry.ask()).rejects.toMatchObject({ status: 503 })
  vi.advanceTimersByTime(3001)
  await refused
  const next = inquiry.ask()
  expect(put.mock.calls).toEqual([[1], [2]])
  inquiry.answered(7, 1)
  inquiry.answered(8, 2)
  expect(await next).toBe(8)
  const last = inquiry.ask()
  inquiry.answered(9)
  expect(await last).toBe(9)
})
