import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { routes } from '../../../src/engines/transit/index.ts'
import type { Reply } from '../../support/client.ts'
import { done, hello, useNode } from '../node.ts'
import { importKey } from './envelope.ts'

const node = useNode()

/** Whether an answer has 32 bytes in any form, including base64 of base64 as in a backup. */
function shows(reply: Reply, key: Buffer): boolean {
  const { data } = (reply.body ?? {}) as { data?: { backup?: string } }
  const text = `${reply.text}${Buffer.from(data?.backup ?? '', 'base64')}`
  return [key.toString('base64'), key.toString('base64url'), key.toString('hex')].some((form) => text.includes(form))
}

/** Asks every route of the engine once, in the order of the table, for this key. @returns those that showed the key */
async function whoShows(name: string, key: Buffer): Promise<string[]> {
  const ciphertext = (await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))).string(
    'data.ciphertext',
  )
  const hmac = (await done(node.root.post(`transit/hmac/${name}`, { input: hello }))).string('data.hmac')
  const body = { plaintext: hello, input: hello, ciphertext, hmac }
  const captures: Record<string, string> = { name, dst: name, src: name, version: 'latest', type: 'plaintext' }
  const kinds = ['encryption-key', 'signing-key', 'hmac-key', 'public-key', 'certificate-chain']
  const showing: string[] = []
  for (const { method, path } of routes) {
    if (path.startsWith('config/') || path === 'cache-config') continue
    for (const kind of path.includes(':key_type') ? kinds : ['']) {
      const url = path.replace(/:(\w+)\*?/g, (_, capture: string) => captures[capture] ?? (kind || '32'))
      const reply = await node.root.call(method, `transit/${url}`, method === 'POST' ? body : undefined)
      expect(reply.status, `${method} ${url}: ${reply.text}`).toBeLessThan(500)
      if (shows(reply, key)) showing.push(`${method} ${url.replaceAll(name, 'KEY')}`)
    }
  }
  return showing
}

describe('the material of a key', () => {
  test('is in no answer of any route, unless it may leave', async () => {
    const [name, key] = ['closed', randomBytes(32)]
    await importKey(node.root, name, key, { allow_rotation: true })
    expect(await whoShows(name, key)).toEqual([])
  })

  test('that may leave is in the answers of export and backup alone', async () => {
    const [name, key] = ['open', randomBytes(32)]
    await importKey(node.root, name, key, { exportable: true, allow_plaintext_backup: true })
    expect(await whoShows(name, key)).toEqual([
      'GET export/encryption-key/KEY',
      'GET export/encryption-key/KEY/latest',
      'GET backup/KEY',
    ])
  })
})
