import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Conflict, DuplicateRow, Failure } from '../../../src/store/faults.ts'
import { persist } from '../../../src/store/pool/retry.ts'

/** What `persist` repeats, and how often; an attempt takes as long as the test says. */

const deadlineMilliseconds = 1000

/** Attempts that all fail; each takes one of these times, the last of them from then on. */
async function tried(error: unknown, milliseconds: readonly number[]): Promise<{ attempts: number; end: unknown }> {
  let [now, attempts] = [5000, 0]
  const clock = { ...systemClock, monotonic: () => now }
  const attempt = async () => {
    now += milliseconds[Math.min(attempts++, milliseconds.length - 1)] ?? 0
    throw error
  }
  const end = await persist(clock, deadlineMilliseconds, attempt).catch((thrown: unknown) => thrown)
  return { attempts, end }
}

const serverError = (errno: number) => new Failure(Object.assign(new Error('refused'), { errno }))

test('a passing error is repeated before the deadline, and is 503 from the deadline on', async () => {
  const refused = expect.objectContaining({ status: 503, retryAfterSeconds: 1 })
  expect(await tried(new Conflict(), [1000])).toEqual({ attempts: 1, end: refused })
  expect(await tried(new Conflict(), [999, 1])).toEqual({ attempts: 2, end: refused })
  expect(await tried(serverError(1213), [400])).toEqual({ attempts: 3, end: refused })
})

test.each([
  [1213, 'a deadlock'],
  [1205, 'a wait for a lock'],
  [1020, 'a row changed since the snapshot'],
  [3100, 'a hook of the replication'],
  [3101, 'a roll-back by the replication'],
  [1615, 'a statement to be prepared again'],
  [1317, 'an interrupted statement'],
  [1969, 'a statement that took too long on MariaDB'],
  [3024, 'a statement that took too long on MySQL'],
  [1461, 'too many prepared statements'],
  [3797, 'a failed wait for the commits of the group'],
  [1047, 'a node outside the quorum'],
  [1180, 'an error during COMMIT'],
  [1053, 'a shutdown'],
  [1927, 'a connection killed on MariaDB'],
  [4031, 'a connection closed for its silence on MySQL'],
  [1040, 'too many connections'],
  [1203, 'too many connections of a user'],
  [1226, 'the limit of an account'],
  [1290, 'a read-only option'],
  [1836, 'read-only mode'],
  [3032, 'offline mode'],
  [3796, 'a member that cannot wait for the group'],
])('error %i of a server, %s, is repeated', async (errno) => {
  expect(await tried(serverError(errno), [999, 1])).toMatchObject({ attempts: 2, end: { status: 503 } })
})

test('any other error is not repeated, and is thrown as it is', async () => {
  const error = serverError(1146)
  expect(await tried(error, [0])).toEqual({ attempts: 1, end: error })
})

test('a row that is too large is refused at once with 400', async () => {
  for (const errno of [1406, 1153])
    expect(await tried(serverError(errno), [0])).toMatchObject({ attempts: 1, end: { status: 400 } })
})

test('a taken key is repeated once, and then thrown as it is', async () => {
  const error = new DuplicateRow('policies', undefined)
  expect(await tried(error, [0])).toEqual({ attempts: 2, end: error })
})
