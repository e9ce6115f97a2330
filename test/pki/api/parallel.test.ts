import { expect, test } from 'vitest'
import { useSharedNode } from '../../api/node.ts'
import { createAuthority, dataOf } from './authority.ts'

const node = useSharedNode()
const many = 100
const all = <T>(work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: many }, (_, index) => work(index)))

test('a hundred roles are written at once, each as it was asked for', async () => {
  const pki = await createAuthority(node)
  const replies = await all((index) => pki.post(`roles/r${index}`, { max_ttl: index + 1 }))
  expect(replies.map(({ status }) => status)).toEqual(Array(many).fill(200))
  expect(replies.map((reply) => dataOf(reply).max_ttl)).toEqual(replies.map((_, index) => index + 1))
  expect((dataOf(await pki.list('roles')).keys as string[]).length).toBe(many)
})

test('a hundred certificates are issued at once, all of them stored, under serials of their own', async () => {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r')
  const replies = await all((index) => pki.post('issue/r', { common_name: `h${index}.example`, ttl: '1h' }))
  expect(replies.filter(({ status }) => status !== 200).map(({ text }) => text)).toEqual([])
  const serials = new Set(replies.map((reply) => dataOf(reply).serial_number))
  expect(serials.size).toBe(many)
  const { keys } = dataOf(await pki.list('certs'))
  for (const serial of serials) expect(keys).toContain(serial)
})

test('a hundred keys are made at once; each name is given once', async () => {
  const pki = await createAuthority(node)
  const replies = await all((index) =>
    pki.post('keys/generate/internal', { key_type: 'ec', key_name: `k${Math.floor(index / 2)}` }),
  )
  const made = replies.filter(({ status }) => status === 200)
  expect(made.length).toBe(many / 2)
  expect(replies.filter(({ status }) => status !== 200 && status !== 400).map(({ text }) => text)).toEqual([])
  expect(new Set(made.map((reply) => dataOf(reply).key_name)).size).toBe(many / 2)
})
