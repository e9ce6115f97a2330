import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Door, type Interior } from '../../src/door.ts'
import type { RawReply, RawRequest } from '../../src/request/exchange.ts'

const reply = (body: string): RawReply => ({ status: 200, headers: [], body })
const request: RawRequest = {
  id: '',
  method: 'GET',
  rawPath: '/',
  query: '',
  headers: {},
  body: Buffer.alloc(0),
  remoteAddress: '',
  remotePort: 0,
  clientCertificate: undefined,
}

/** A door, and an interior that notes what happens to it and answers when it is told to. */
function given() {
  const events: string[] = []
  const answers: (() => void)[] = []
  const enter = async (): Promise<Interior> => {
    events.push('enter')
    return {
      pipeline: { handle: () => new Promise((resolve) => answers.push(() => resolve(reply('inside')))) },
      nudged() {},
      ended: async () => {},
      lock: async () => void events.push('lock'),
      [Symbol.asyncDispose]: async () => void events.push('dispose'),
    }
  }
  return { events, answers, enter, door: new Door({ handle: () => reply('outside') }, systemClock) }
}
const turn = () => new Promise((resolve) => setTimeout(resolve, 40))

describe('a shut door', () => {
  test('answers by what stands outside, and stays shut when the interior cannot be built', async () => {
    const { door, enter } = given()
    await expect(door.open(() => Promise.reject(new Error('no token')))).rejects.toThrow('no token')
    expect(door.handle(request)).toMatchObject({ body: 'outside' })
    await door.open(enter)
    expect(door.handle(request)).toBeInstanceOf(Promise)
  })

  test('is opened once, however many ask', async () => {
    const { door, enter, events } = given()
    await Promise.all([door.open(enter), door.open(enter)])
    expect(events).toEqual(['enter'])
  })
})

describe('shutting', () => {
  test('refuses at once, and takes the keys when what is under way is answered', async () => {
    const { door, enter, events, answers } = given()
    await door.open(enter)
    const before = door.handle(request)
    const shut = door.shut()
    await turn()
    expect(door.handle(request)).toMatchObject({ body: 'outside' })
    expect(events).toEqual(['enter'])
    answers[0]?.()
    expect(await before).toMatchObject({ body: 'inside' })
    await shut
    expect(events.slice(0, 2)).toEqual(['enter', 'lock'])
  })

  test('takes the keys from whoever takes too long', async () => {
    const { door, enter, events } = given()
    await door.open(enter)
    void door.handle(request)
    await door.shut()
    expect(events).toContain('lock')
  })

  test('does not wait for the request that asked for it, which is answered before the rest goes', async () => {
    const { door, enter, events, answers } = given()
    await door.open(enter)
    void door.handle(request)
    await door.ask(() => door.shut())
    await turn()
    expect(events).toEqual(['enter', 'lock'])
    answers[0]?.()
    await door[Symbol.asyncDispose]()
    expect(events).toEqual(['enter', 'lock', 'dispose'])
  })

  test('is over before the door opens again', async () => {
    const { door, enter, events } = given()
    await door.open(enter)
    await Promise.all([door.shut(), door.open(enter), door.shut()])
    await door[Symbol.asyncDispose]()
    expect(events).toEqual(['enter', 'lock', 'dispose', 'enter', 'lock', 'dispose'])
  })
})
