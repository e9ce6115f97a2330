import { expect, test } from 'vitest'
import { parseConfig } from '../../src/config.ts'

const smallest = `database: { url: 'mysql://a@b/c' }\npkcs11: { library: a, token: { slot: 0 }, pin: { prompt: true } }`
const parsed = (address: string) =>
  parseConfig(`${smallest}\ncluster: { nudge: { address: '127.0.0.1:8202', peers: ['${address}'] } }`, {}).config
    .cluster

test.each(['node2:1', '[::1]:65535', '127.0.0.1:8202'])('a node may be nudged at %s', (address) => {
  expect(parsed(address).nudge?.peers).toEqual([address])
})

test.each(['node2:0', 'node2:00', 'node2:65536', 'node2:70000', 'node2', ':8202'])(
  'a node cannot be nudged at %s',
  (address) => {
    expect(() => parsed(address)).toThrow('cluster.nudge.peers')
  },
)
