import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { CKR } from '../../../src/hsm/constants.ts'
import { MovableClock } from '../../auth/world.ts'
import { group } from '../../hsm/support/fault.ts'
import { writeOcspRequest } from '../../x509/ocspasking.ts'
import { failureOf, readAnswer } from './answer.ts'
import { clock, TestMount, useOcspWorld, type Worker } from './world.ts'

const world = useOcspWorld()
afterEach(() => {
  clock.ahead = 0
  world.shim.clear()
})

const hour = 3_600_000
const nonce = Buffer.alloc(32, 9)
const rest = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const stranger = () => `7f${randomBytes(19).toString('hex')}`

describe('an answer without a nonce', () => {
  test('is signed once for a stored certificate, until half of its life is over', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    const { body } = await pki.ask(serial)
    const { thisUpdate, nextUpdate } = readAnswer(body)
    expect(nextUpdate).toBe(thisUpdate + 12 * hour)
    clock.ahead = 5.9 * hour
    expect((await pki.ask(serial)).body).toBe(body)
    clock.ahead = 6.1 * hour
    const later = await pki.ask(serial)
    expect(later.body).not.toBe(body)
    expect(readAnswer(later.body).thisUpdate).toBeGreaterThan(thisUpdate)
  })

  test('is signed once however many ask for the first time', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    const replies = await Promise.all(Array.from({ length: 50 }, () => pki.ask(serial)))
    expect(new Set(replies.map(({ body }) => body.toString('hex'))).size).toBe(1)
  })

  test('is signed for each request if it may not be kept, and for unknown serial numbers', async () => {
    const pki = await TestMount.make(world.worker)
    await pki.configure({ ocspExpiry: '0' })
    const serial = await pki.issue()
    for (const asked of [serial, stranger()]) {
      const [one, other] = [await pki.ask(asked), await pki.ask(asked)]
      expect(one.body).not.toEqual(other.body)
      expect(readAnswer(one.body).nextUpdate).toBeUndefined()
    }
  })

  test('goes when anything of the authority changes', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    expect((await pki.answer(serial)).status).toBe('good')
    await pki.configure({ ocspExpiry: '2h' })
    const { thisUpdate, nextUpdate } = await pki.answer(serial)
    expect(nextUpdate).toBe(thisUpdate + 2 * hour)
  })

  test('serves on until it ends while the token is away', async () => {
    const pki = await TestMount.make(world.worker)
    const [serial, other] = [await pki.issue(), await pki.issue()]
    const { body } = await pki.ask(serial)
    world.shim.set({ groups: group.sign, rv: CKR.DEVICE_REMOVED })
    clock.ahead = 7 * hour
    expect((await pki.ask(serial)).body).toBe(body)
    expect(failureOf((await pki.ask(other)).body)).toBe('tryLater')
    clock.ahead = 13 * hour
    expect(failureOf((await pki.ask(serial)).body)).toBe('tryLater')
    world.shim.clear()
    while (!world.cluster.hsm.healthy) await rest(20)
    expect((await pki.answer(serial)).status).toBe('good')
  })
})

describe('an answer to a nonce', () => {
  test('repeats it, of 1 to 128 bytes, and is given to no other caller', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    for (const length of [1, 32, 128]) {
      const reply = await pki.ask(serial, { nonce: Buffer.alloc(length, 7) })
      expect(reply.answer).toBeUndefined()
      expect(readAnswer(reply.body)).toMatchObject({ status: 'good', nonce: Buffer.alloc(length, 7) })
    }
    expect((await pki.answer(serial)).nonce).toBeUndefined()
    for (const length of [0, 129]) expect((await pki.ask(serial, { nonce: Buffer.alloc(length) })).status).toBe(400)
  })
})

describe('no answer', () => {
  test('is signed by a clock that is wrong', async () => {
    const wrong = new MovableClock()
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    const { database, context } = await world.join('default', wrong)
    wrong.ahead = 60_000
    while (Math.abs(database.clockSkew?.milliseconds ?? 0) < 50_000) {
      database.poll()
      await rest(20)
    }
    for (const asked of [serial, stranger()]) {
      expect(await pki.ask(asked, { responder: context.ocsp })).toMatchObject({
        status: 200,
        body: Buffer.from('30030a0103', 'hex'),
      })
    }
  })

  test('is signed by a token that fails: an internal error, of which the client learns nothing', async () => {
    const pki = await TestMount.make(world.worker)
    const serial = await pki.issue()
    await pki.answer(await pki.issue())
    world.shim.set({ groups: group.sign, rv: CKR.FUNCTION_FAILED })
    expect(await pki.ask(serial)).toMatchObject({ status: 500, body: Buffer.from('30030a0102', 'hex') })
  })

  test('but the one of RFC 6960 comes to what is no request', async () => {
    const pki = await TestMount.make(world.worker)
    const { certificate: issuer } = await pki.issuer()
    const whole = writeOcspRequest({ issuer, serial: Buffer.from(await pki.issue(), 'hex'), nonce })
    const { ocsp } = world.worker.context
    const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255))
    const mutated = fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => {
      const der = Buffer.from(whole)
      for (const [at, value] of changes) der[at] = value
      return der
    })
    const bytes = fc.oneof(
      { weight: 3, arbitrary: mutated },
      fc.uint8Array({ maxLength: 3000 }).map((array) => Buffer.from(array)),
      fc.nat(whole.length - 1).map((length) => whole.subarray(0, length)),
    )
    const seen = new Set<number>()
    await fc.assert(
      fc.asyncProperty(bytes, async (der) => {
        const { status, body } = await ocsp.answer(pki.mount, der, 'local')
        seen.add(status)
        if (status === 400) expect(failureOf(body)).toBe('malformedRequest')
        else expect(status).toBe(200)
      }),
      { numRuns: 2000 },
    )
    expect(seen).toEqual(new Set([200, 400]))
  }, 60_000)
})

describe('after a revocation is recorded', () => {
  test('no worker answers good, however many requests arrive meanwhile', async () => {
    const pki = await TestMount.make(world.worker)
    const workers: readonly Worker[] = [world.worker, await world.join()]
    const serials = await Promise.all(Array.from({ length: 8 }, () => pki.issue()))
    const revoked = new Set<string>()
    let asking = true
    const late: string[] = []
    const seen = new Set<string>()
    const ask = async ({ context }: Worker, serial: string, index: number) => {
      while (asking) {
        const before = revoked.has(serial)
        const more = index % 3 === 0 ? { nonce } : {}
        const { body } = await pki.ask(serial, { responder: context.ocsp, ...more })
        const said = failureOf(body) ?? readAnswer(body).status
        seen.add(said)
        if (before && said !== 'revoked' && said !== 'tryLater') late.push(said)
        await rest(5)
      }
    }
    const askers = serials.flatMap((serial, index) => workers.map((worker) => ask(worker, serial, index)))
    for (const serial of serials) {
      await pki.revoke(serial)
      revoked.add(serial)
    }
    await rest(100)
    asking = false
    await Promise.all(askers)
    expect(late).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(['good', 'revoked']))
  }, 60_000)
})
