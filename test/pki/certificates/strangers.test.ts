import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CertificateWorld, createCertificateWorld } from './world.ts'

let world: CertificateWorld
beforeAll(async () => {
  world = await createCertificateWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

test('however many unknown serials are requested, storing, listing and cached reads continue', async () => {
  const { certificates, lists, fresh, mount } = { ...world.node, mount: world.mount.uuid }
  const known = await certificates.store(fresh())
  await certificates.find(known)
  const strangers = Promise.allSettled(
    Array.from({ length: 2000 }, () => certificates.find({ mount, serial: randomBytes(20).toString('hex') })),
  )
  const stored = Array.from({ length: 100 }, () => certificates.store(fresh()))
  const listed = Array.from({ length: 100 }, () => lists.list(mount, { limit: 10 }))
  expect((await certificates.find(known))?.certificate).toEqual(known)
  expect(await Promise.all(stored)).toHaveLength(100)
  for (const page of await Promise.all(listed)) expect(page.length).toBeGreaterThan(0)
  const refused = (await strangers).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(refused.length).toBeGreaterThan(1000)
  for (const error of refused) expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1 })
  expect((await certificates.find(known))?.certificate).toEqual(known)
})

test('absence is not cached: a serial that was asked for is found once it is stored', async () => {
  const { certificates, fresh } = world.node
  const certificate = fresh()
  expect(await certificates.find(certificate)).toBeUndefined()
  const row = await certificates.store(certificate)
  expect((await certificates.find(certificate))?.certificate).toEqual(row)
})
