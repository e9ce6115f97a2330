import { describe, expect, test } from 'vitest'
import type { ToWorker } from '../../src/supervisor/messages.ts'
import { Sealing } from '../../src/supervisor/sealing.ts'

/** Three workers that only note their messages, and a state that lives as long as the test. */
function given() {
  const state = {
    sealed: false,
    set(sealed: boolean) {
      state.sealed = sealed
    },
  }
  const party = (patience = 1) => {
    const heard: string[] = []
    let sequence = 0
    return {
      heard,
      patience,
      get sequence() {
        return sequence
      },
      send(message: ToWorker) {
        if (message.type === 'seal') sequence = message.sequence
        if (message.type === 'seal' || message.type === 'sealDone') heard.push(`${message.type} ${message.sealed}`)
      },
    }
  }
  const workers = [party(), party(), party()] as const
  return { state, workers, peer: party(2), sealing: new Sealing<ReturnType<typeof party>>(state) }
}

describe('a seal', () => {
  test('is on disk before any worker hears of it, reaches all at once, and is answered when all have followed', () => {
    const { state, workers, sealing } = given()
    const [a, b, c] = workers
    sealing.request(b, true, workers, 0)
    expect(state.sealed).toBe(true)
    expect(workers.map(({ heard }) => heard)).toEqual([['seal true'], ['seal true'], ['seal true']])
    for (const one of [a, b]) sealing.followed(one, one.sequence)
    expect(b.heard).toEqual(['seal true'])
    sealing.followed(c, c.sequence)
    expect(b.heard).toEqual(['seal true', 'sealDone true'])
    expect(a.heard).toEqual(['seal true'])
  })

  test('counts a worker that has ended as one that followed', () => {
    const { workers, sealing } = given()
    const [a, b, c] = workers
    sealing.request(a, true, workers, 0)
    sealing.gone(b)
    sealing.gone(a)
    sealing.followed(c, c.sequence)
    expect(a.heard).toEqual(['seal true', 'sealDone true'])
  })

  test('names those that still hold their keys after 5 s', () => {
    const { workers, sealing } = given()
    const [a, b, c] = workers
    sealing.request(a, true, workers, 0)
    sealing.followed(a, a.sequence)
    expect(sealing.late(5000)).toEqual([])
    expect(sealing.late(5001)).toEqual([b, c])
  })

  test('gives another supervisor twice the time, which waits for its own workers first', () => {
    const { workers, peer, sealing } = given()
    const [a] = workers
    sealing.request(undefined, true, [a, peer], 0)
    expect(sealing.late(10_000)).toEqual([a])
    expect(sealing.late(10_001)).toEqual([a, peer])
  })
})

describe('an unseal', () => {
  test('goes from one worker to the next, the one that asked first', () => {
    const { workers, sealing } = given()
    const [a, b, c] = workers
    sealing.request(b, false, workers, 0)
    expect([a, b, c].map(({ heard }) => heard.length)).toEqual([0, 1, 0])
    sealing.followed(b, b.sequence)
    expect([a, b, c].map(({ heard }) => heard.length)).toEqual([1, 1, 0])
    sealing.gone(a)
    sealing.followed(c, c.sequence)
    expect(b.heard).toEqual(['seal false', 'sealDone false'])
    expect(sealing.late(1e9)).toEqual([])
  })

  test('gives way to a seal, and whoever asked for it learns that the node is sealed', () => {
    const { state, workers, sealing } = given()
    const [a, b, c] = workers
    sealing.request(a, false, workers, 0)
    const old = a.sequence
    expect(sealing.unsealing).toBe(true)
    sealing.request(undefined, true, workers, 0)
    expect(sealing.unsealing).toBe(false)
    sealing.followed(a, old)
    expect(b.heard).toEqual(['seal true'])
    for (const one of [a, b, c]) sealing.followed(one, one.sequence)
    expect(a.heard).toEqual(['seal false', 'seal true', 'sealDone true'])
    expect(state.sealed).toBe(true)
  })

  test('is answered at once where there is no worker', () => {
    const { workers, sealing } = given()
    sealing.request(workers[0], false, [], 0)
    expect(workers[0].heard).toEqual(['sealDone false'])
  })
})
