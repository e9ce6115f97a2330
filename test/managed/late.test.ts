import { expect, test } from 'vitest'
import { startServer } from '../support/server.ts'
import { createToken } from '../support/token.ts'
import { makeEc } from './tool.ts'
import { at } from './world.ts'

test('a token made after the server began is unavailable, with an explanation, until the server is started again', async () => {
  const library = '/usr/lib/softhsm/libsofthsm2.so'
  await using server = await startServer({ config: { pkcs11Libraries: [{ name: 'same', library }] } })
  const { label: token_label, pin } = await createToken('late').then(async (token) => {
    await makeEc(token, 'ec', '01')
    return token
  })
  const settings = { library: 'same', token_label, pin, mechanism: '0x1041', key_label: 'ec', any_mount: true }
  const write = () => server.client().post(at('late'), settings)
  const refused = await write()
  expect(refused.status, refused.text).toBe(503)
  expect(refused.text).toContain('was made after this server began')
  await server.stop()
  await server.start()
  expect((await write()).status).toBe(204)
}, 60_000)
