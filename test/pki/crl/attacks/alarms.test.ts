import { createConnection } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { done, useNode } from '../../../api/node.ts'
import { enable } from '../../../audit/device.ts'
import { createAuthority } from '../../api/authority.ts'
import { fetchRaw, numberOf, textOf } from '../reading.ts'

const node = useNode()

test('a list that was removed in SQL is made anew, with an alarm in audit log, metrics and log', async () => {
  const device = await enable(node.root)
  const pki = await createAuthority(node)
  await pki.root()
  const connection = await createConnection(node.server.database.url)
  await connection.query("DELETE FROM pki_crls WHERE kind = 'complete'").finally(() => connection.end())
  await done(pki.get('crl/rotate'))
  expect(numberOf(await textOf(node, pki, 'crl'))).toBe(2)
  expect((await fetchRaw(node, `${pki.path}/crl`)).status).toBe(200)

  const alarms = device.lines().filter(({ type }) => String(type) === 'alarm')
  expect(alarms).toEqual([
    {
      time: expect.any(String),
      type: 'alarm',
      alarm: {
        id: expect.any(String),
        namespace: { id: 'root' },
        path: 'pki/crl',
        message: expect.stringMatching(
          /^CRL issuer [0-9a-f]{64}: a published revocation list was changed in the database/,
        ),
      },
      chain: expect.objectContaining({ sequence: expect.any(Number) }),
    },
  ])
  const { text } = await done(node.root.get('sys/metrics?format=prometheus'))
  expect(text).toMatch(/^strongroom_pki_crl_alarms(?:\{[^}]*\})? [1-9]/m)
  expect(node.server.output()).toContain('revocations or lists were changed behind our back')
  await device.disable()
})
