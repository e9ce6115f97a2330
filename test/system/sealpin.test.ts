import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { until } from '../attack/nodes.ts'
import { createShim } from '../hsm/support/fault.ts'
import { changePin } from '../support/pin.ts'
import { startServer } from '../support/server.ts'

test('a PIN that the token refuses after a seal is tried once, however often the node is unsealed', async () => {
  using shim = await createShim('/usr/lib/softhsm/libsofthsm2.so')
  await using server = await startServer({ workers: 2, library: shim.library })
  expect((await server.client().post('sys/seal')).status).toBe(204)
  changePin(server.token, server.token.pin, randomBytes(8).toString('hex'))
  const guest = server.client('')
  const { logins } = shim.read()
  for (let time = 0; time < 3; time++) {
    await until(async () => (await guest.post('sys/unseal', { key: server.unsealSecret })).status === 503)
  }
  expect(shim.read().logins - logins).toBe(1)
  expect((await guest.get('sys/seal-status')).body).toMatchObject({ sealed: true })
}, 120_000)
