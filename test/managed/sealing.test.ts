import { randomUUID } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { type Cluster, useCluster } from '../keys/support.ts'

/** PINs of other tokens as they are kept: wrapped, and opened for a login only. */

let cluster: Cluster
useCluster('sealing', (begun) => {
  cluster = begun
})

async function kept(pin: string): Promise<string> {
  const { custody, place } = cluster
  const draft = await custody.managed.pins.seal(pin, 'me')
  const owner = { mount: '', key: randomUUID(), version: 1 }
  const { id } = await place.database.transaction((tx) => custody.materials.insert(tx, draft, owner))
  return custody.managed.pins.open(await custody.materials.fetch(id))
}

test.each([1, 7, 8, 9, 255])('a PIN of %i bytes comes back exactly', async (length) => {
  const pin = 'p'.repeat(length)
  expect(await kept(pin)).toBe(pin)
})

test.each([
  ['of 256 bytes', 'p'.repeat(256)],
  ['of 256 bytes in 128 letters', 'ü'.repeat(128)],
  ['with a zero', 'pin\0pin'],
])('a PIN %s is refused', async (_, pin) => {
  await expect(kept(pin)).rejects.toMatchObject({
    status: 400,
    message: 'pin must be 1 to 255 bytes without a zero',
  })
})

test('a PIN that was put into the token is wiped here', async () => {
  const { hsm, custody } = cluster
  const creating = vi.spyOn(hsm, 'create')
  try {
    await custody.managed.pins.seal('p'.repeat(20), 'me')
    const given = creating.mock.calls.map(([{ value }]) => Buffer.from(value ?? []))
    expect(given).toEqual([Buffer.alloc(20)])
  } finally {
    creating.mockRestore()
  }
})
