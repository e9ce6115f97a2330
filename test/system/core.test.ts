import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Core, type UnsealedCore } from '../../src/core.ts'
import type { RawReply, RawRequest } from '../../src/request/exchange.ts'

const reply = (body: string): RawReply => ({ status: 200, headers: [], body })
const request: RawRequest = {
  id: '',
  receivedAt: 0,
  method: 'GET',
  rawPath: '/',
  query: '',
  headers: {},
  body: Buffer.alloc(0),
  remoteAddress: '',
  remotePort: 0,
  clientCertificate: undefined,
}

/** A core, and an unsealed part that notes what happens to it and answers when it is told to. */
function given() {
  const events: string[] = []
  const answers: (() => void)[] = []
  const build = async (): Promise<UnsealedCore> => {
    events.push('build')
    return {
      pipeline: { handle: () => new Promise((resolve) => answers.push(() => resolve(reply('unsealed')))) },
      poll() {},
      reopen: async () => undefined,
      forget: async () => {},
      dropKeys: async () => void events.push('dropKeys'),
      [Symbol.asyncDispose]: async () => void events.push('dispose'),
    }
  }
  return { events, answers, build, core: new Core({ handle: () => reply('sealed') }, systemClock) }
}
const turn = () => new Promise((resolve) => setTimeout(resolve, 40))

describe('a sealed core', () => {
  test('answers by the sealed pipeline, and stays sealed when the unsealed core cannot be built', async () => {
    const { core, build } = given()
    await expect(core.unseal(() => Promise.reject(new Error('no token')))).rejects.toThrow('no token')
    expect(core.handle(request)).toMatchObject({ body: 'sealed' })
    await core.unseal(build)
    expect(core.handle(request)).toBeInstanceOf(Promise)
  })

  test('is unsealed once, however many ask', async () => {
    const { core, build, events } = given()
    await Promise.all([core.unseal(build), core.unseal(build)])
    expect(events).toEqual(['build'])
  })

  test('knows no limit of a body; unsealed it asks the routes', async () => {
    const { core, build } = given()
    const limit = { bytes: 7, caller: 'anybody' } as const
    expect(core.bodyLimit(request)).toBe(undefined)
    await core.unseal(async () => ({
      ...(await build()),
      pipeline: { handle: () => reply(''), bodyLimit: () => limit },
    }))
    expect(core.bodyLimit(request)).toBe(limit)
  })
})

describe('sealing', () => {
  test('refuses at once, and drops the keys when requests under way are answered', async () => {
    const { core, build, events, answers } = given()
    await core.unseal(build)
    const before = core.handle(request)
    const sealed = core.seal()
    await turn()
    expect(core.handle(request)).toMatchObject({ body: 'sealed' })
    expect(events).toEqual(['build'])
    answers[0]?.()
    expect(await before).toMatchObject({ body: 'unsealed' })
    await sealed
    expect(events.slice(0, 2)).toEqual(['build', 'dropKeys'])
  })

  test('drops the keys when a request takes too long', async () => {
    const { core, build, events } = given()
    await core.unseal(build)
    void core.handle(request)
    await core.seal()
    expect(events).toContain('dropKeys')
  })

  test('does not wait for the request that asked for it, which is answered before the core is disposed', async () => {
    const { core, build, events, answers } = given()
    await core.unseal(build)
    void core.handle(request)
    await core.whileSealing(() => core.seal())
    await turn()
    expect(events).toEqual(['build', 'dropKeys'])
    answers[0]?.()
    await core[Symbol.asyncDispose]()
    expect(events).toEqual(['build', 'dropKeys', 'dispose'])
  })

  test('is over before the core is unsealed again', async () => {
    const { core, build, events } = given()
    await core.unseal(build)
    await Promise.all([core.seal(), core.unseal(build), core.seal()])
    await core[Symbol.asyncDispose]()
    expect(events).toEqual(['build', 'dropKeys', 'dispose', 'build', 'dropKeys', 'dispose'])
  })
})
