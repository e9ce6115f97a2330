import { expect, test } from 'vitest'
import { done, expectRefused, hello, useNode } from '../node.ts'

const node = useNode()

/** The first `enable` of pki/ or transit/, which the first initialisation made. */
const enable = (type: string) => node.root.post(`sys/mounts/${type}`, { type, description: 'mine' })

test('is refused where a role was written, though it is deleted', async () => {
  await done(node.root.post('pki/roles/r', { allow_any_name: true }))
  await done(node.root.delete('pki/roles/r'))
  expectRefused(await enable('pki'), 400, 'path is already in use at pki/')
})

test('is refused where a key was made, though it is deleted', async () => {
  await done(node.root.post('transit/random/16'))
  await done(node.root.post('transit/encrypt/k', { plaintext: hello }))
  await done(node.root.post('transit/keys/k/config', { deletion_allowed: true }))
  await done(node.root.delete('transit/keys/k'))
  expect((await node.root.list('transit/keys')).status).toBe(404)
  expectRefused(await enable('transit'), 400, 'path is already in use at transit/')
})
