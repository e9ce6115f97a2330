import { expect, test } from 'vitest'
import type { ToWorker } from '../../src/supervisor/messages.ts'
import { Relay } from '../../src/supervisor/relay.ts'

/** A worker that counts the polls that it is told to make. */
function worker(slot: number | undefined) {
  const sharedLog = slot === undefined ? undefined : { id: 'log', descriptor: 4, slot }
  return {
    polls: 0,
    incarnations: [],
    sharedLog,
    send({ type }: ToWorker) {
      if (type === 'poll') this.polls++
    },
  }
}

test('of workers that share a log one polls, each in its turn; every other one polls, too', () => {
  const [one, other, drained] = [worker(0), worker(1), worker(2)]
  const [alone, drainedAlone] = [worker(undefined), worker(undefined)]
  const relay = new Relay(
    () => [one, other, alone],
    () => [one, other, alone, drained, drainedAlone],
  )
  for (let n = 0; n < 4; n++) relay.poll()
  expect([one, other, drained, alone, drainedAlone].map(({ polls }) => polls)).toEqual([2, 2, 0, 4, 4])
})

test('where no worker serves, those that share no log poll', () => {
  const drained = worker(undefined)
  const relay = new Relay<typeof drained>(
    () => [],
    () => [drained],
  )
  relay.poll()
  expect(drained.polls).toBe(1)
})
