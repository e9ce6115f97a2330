import { createConnection } from 'mysql2/promise'
import pkcs11js from 'pkcs11js'
import { expect, test } from 'vitest'
import { createDatabase } from '../support/database.ts'
import { createToken } from '../support/token.ts'

test('a test token is found by its serial and opens with its PIN', async () => {
  const token = await createToken('frame')
  const other = await createToken('frame')
  expect(other.serial).not.toBe(token.serial)
  const module = new pkcs11js.PKCS11()
  module.load(token.library)
  module.C_Initialize()
  const slot = module.C_GetSlotList(true).find((id) => module.C_GetTokenInfo(id).serialNumber.trim() === token.serial)
  if (slot === undefined) throw new Error('no such slot')
  expect(module.C_GetTokenInfo(slot).label.trim()).toBe(token.label)
  const session = module.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION)
  module.C_Login(session, pkcs11js.CKU_USER, token.pin)
  expect(module.C_GenerateRandom(session, Buffer.alloc(16))).toHaveLength(16)
  module.C_Finalize()
})

test('each test database is a schema of its own', async () => {
  await using one = await createDatabase()
  await using two = await createDatabase()
  const first = await createConnection(one.url)
  const second = await createConnection(two.url)
  await first.query('CREATE TABLE t (a INT)')
  const [tables] = await second.query('SHOW TABLES')
  expect(tables).toEqual([])
  await first.end()
  await second.end()
})
