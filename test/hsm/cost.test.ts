import { randomBytes } from 'node:crypto'
import pkcs11 from 'pkcs11js'
import { expect, test } from 'vitest'
import { gcm, newAes, openHsm, theToken } from './support/open.ts'

const calls = 1000
const rounds = 15

/** Processor time of one call in µs. */
function cost(work: () => unknown): number {
  const before = process.cpuUsage()
  for (let i = 0; i < calls; i++) work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

test('what our layer adds to an AES-GCM call is printed, for whoever changes it', async () => {
  await using open = await openHsm({ executor: 'inline' })
  const { hsm } = open
  const key = await newAes(hsm, ['encrypt'])
  const lib = new pkcs11.PKCS11()
  lib.load((await theToken()).library)
  const session = lib.C_OpenSession(hsm.token.slot, 6)
  const [iv, plaintext] = [randomBytes(12), randomBytes(64)]
  const bare = (): void => {
    const parameter = { type: 7, iv, ivBits: 96, tagBits: 128 }
    lib.C_EncryptInit(session, { mechanism: 0x1087, parameter }, key.value)
    lib.C_Encrypt(session, plaintext, Buffer.allocUnsafe(80))
  }
  const ours = (): unknown => hsm.encrypt(key, gcm(iv), plaintext)
  const pairs = Array.from({ length: rounds }, () => ({ bare: cost(bare), ours: cost(ours) }))
  const differences = pairs.map((pair) => pair.ours - pair.bare)
  const spread = `${Math.min(...differences).toFixed(2)} to ${Math.max(...differences).toFixed(2)}`
  console.log(
    `AES-GCM of 64 bytes: pkcs11js ${median(pairs.map((pair) => pair.bare)).toFixed(2)} µs,`,
    `hsm.encrypt ${median(pairs.map((pair) => pair.ours)).toFixed(2)} µs,`,
    `difference ${median(differences).toFixed(2)} µs (${spread})`,
  )
  expect(differences).toHaveLength(rounds)
})
