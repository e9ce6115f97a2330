import { expect } from 'vitest'
import type { Client } from '../../support/client.ts'
import { expectServed } from '../nodes.ts'
import type { Pinned } from '../pinned.ts'

const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`)

/**
 * Rotates through one connection, then encrypts at once through every connection. As long as nobody else rotates the
 * key, the version that each of them must use is known.
 * @returns answers that named another version
 */
async function rotateAndUse(key: string, version: number, by: Pinned, all: readonly Pinned[]): Promise<unknown[]> {
  const rotated = await by.ask('POST', `transit/keys/${key}/rotate`)
  expect(rotated.status, rotated.text).toBe(200)
  const answers = await Promise.all(all.map((one) => one.ask('POST', `transit/encrypt/${key}`, { plaintext: '' })))
  return answers.filter((answer) => answer.version !== version)
}

/**
 * Makes twenty keys and rotates each so many times, all keys at the same time, each rotation through the next
 * connection.
 * @returns answers that did not name the version that was acknowledged before they were asked for
 */
export async function rotateAll(root: Client, pinned: readonly Pinned[], times: number): Promise<unknown[]> {
  for (const key of keys) expectServed(await root.post(`transit/keys/${key}`))
  const stale = keys.map(async (key) => {
    const found: unknown[] = []
    for (let turn = 0; turn < times; turn++) {
      const by = pinned[turn % pinned.length]
      if (by) found.push(...(await rotateAndUse(key, 2 + turn, by, pinned)))
    }
    return found
  })
  return (await Promise.all(stale)).flat()
}
