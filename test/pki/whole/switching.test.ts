import { expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import { createAuthority, dataOf } from '../api/authority.ts'
import { readList } from './relying.ts'

/** Settings that change while lists are built. */

const node = useNode({ workers: 2 })

test('lists that are enabled while others are built name all that is revoked when that is answered', async () => {
  const pki = await createAuthority(node)
  const ca = String((await pki.root()).certificate)
  await pki.role('r')
  const { serial_number: serial } = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '24h' })))
  await done(pki.post('revoke', { serial_number: serial }))
  for (let round = 0; round < 12; round++) {
    await done(pki.post('config/crl', { disable: true }))
    const rotations = Array.from({ length: 6 }, () => done(pki.get('crl/rotate')))
    await done(pki.post('config/crl', { disable: false }))
    await Promise.all(rotations)
    const { serials } = await readList((await done(pki.get('crl/pem'))).text, ca)
    expect(serials, `round ${round}`).toHaveLength(1)
  }
}, 60_000)
