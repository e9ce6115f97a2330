import { expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { done, fresh, useSharedNode } from '../node.ts'

const node = useSharedNode()
const faults = (replies: readonly Reply[]) => replies.filter(({ status }) => status >= 500).map(({ text }) => text)
const policy = (n: number) => `path "transit/encrypt/k${n}" { capabilities = ["update"] }`

test('two writers of one policy and one who deletes it never meet a fault', async () => {
  const name = fresh('p')
  const replies: Reply[] = []
  for (let round = 0; round < 40; round++) {
    const write = () => node.root.post(`sys/policies/acl/${name}`, { policy: policy(round) })
    replies.push(...(await Promise.all([write(), write(), node.root.delete(`sys/policies/acl/${name}`)])))
  }
  expect(faults(replies)).toEqual([])
})

test('two who enable one path and one who disables it never meet a fault', async () => {
  const path = fresh('m')
  const replies: Reply[] = []
  for (let round = 0; round < 15; round++) {
    const enable = () => node.root.post(`sys/mounts/${path}`, { type: 'transit' })
    replies.push(...(await Promise.all([enable(), enable(), node.root.delete(`sys/mounts/${path}`)])))
  }
  expect(faults(replies)).toEqual([])
})

test('thirty writers of policies at once all succeed, and every policy has its writer’s text', async () => {
  const name = fresh('p')
  const writers = Array.from({ length: 30 }, (_, writer) => writer)
  const replies = await Promise.all(
    writers.map(async (writer) => {
      const own: Reply[] = []
      for (let n = 0; n < 3; n++) {
        own.push(await node.root.post(`sys/policies/acl/${name}-${writer}`, { policy: policy(100 * writer + n) }))
      }
      return own
    }),
  )
  expect(replies.flat().map(({ status }) => status)).toEqual(Array(90).fill(204))
  for (const writer of writers) {
    const read = await done(node.root.get(`sys/policies/acl/${name}-${writer}`))
    expect(read.string('data.policy')).toBe(policy(100 * writer + 2))
  }
})
