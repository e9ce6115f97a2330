import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asn1, expect as element, readAll, readNumber, readOne } from '../../src/crypto/der.ts'
import { traditionalForm } from '../../src/crypto/privatekey.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { TransientPairs } from '../../src/keys/making/transient.ts'
import { Approval } from '../../src/keys/use/approval.ts'
import { Remembered } from '../support/memory.ts'
import { createToken } from '../support/token.ts'
import { clock, openHsm } from './support.ts'

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createToken('memory'))
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

/** The secret numbers of a private key, as views. */
function secretsOf(pkcs8: Buffer): readonly Buffer[] {
  const { label, der } = traditionalForm(pkcs8)
  if (label === 'EC PRIVATE KEY') return [element(readAll(readOne(der, asn1.sequence))[1], asn1.octetString)]
  if (label === 'RSA PRIVATE KEY') return readAll(readOne(der, asn1.sequence)).slice(3).map(readNumber)
  return [pkcs8.subarray(-32)]
}

test('a secret that is not wiped is found, in either byte order', () => {
  const remembered = new Remembered()
  const [kept, wiped] = [randomBytes(48), randomBytes(48)]
  remembered.add('kept', kept)
  remembered.add('wiped', wiped)
  wiped.fill(0)
  expect(remembered.found()).toEqual(['kept'])
  kept.reverse()
  expect(remembered.found()).toEqual(['kept'])
  kept.fill(0)
  expect(remembered.found()).toEqual([])
})

describe('of a transient pair nothing is left in memory', () => {
  test.each(['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519', 'rsa-2048'])('%s', async (type) => {
    const pairs = new TransientPairs({
      hsm,
      clock,
      capabilities: hsm.capabilities,
      approval: new Approval(false),
      strict: false,
    })
    const remembered = new Remembered()
    for (let round = 0; round < 4; round++) {
      const { pkcs8 } = await pairs.make(type)
      for (const [index, secret] of secretsOf(pkcs8).entries()) remembered.add(`pair ${round}, number ${index}`, secret)
      pkcs8.fill(0)
    }
    expect(remembered.found()).toEqual([])
  })
})
