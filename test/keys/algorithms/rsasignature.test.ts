import { describe, expect, test } from 'vitest'
import { hashOf } from '../../../src/crypto/hashes.ts'
import { type Ability, assumed, Capabilities } from '../../../src/hsm/capabilities.ts'
import { CKM } from '../../../src/hsm/constants.ts'
import { rsaSignature } from '../../../src/keys/algorithms/rsasignature.ts'
import type { Scheme } from '../../../src/keys/algorithms/signature.ts'

/** Which call of the token makes a signature, and what it is given. */

const bytes = 256
const { request } = rsaSignature(bytes)
const proving = (...proven: Ability[]) => new Capabilities({ ...assumed, proven })
const scheme = (hash: string | undefined, more: Partial<Scheme> = {}): Scheme => ({
  ...{ hash: hash === undefined ? undefined : hashOf(hash), prehashed: false, padding: 'pss' },
  ...{ saltLength: 'hash', marshaling: 'asn1' },
  ...more,
})
const input = Buffer.from('input')

describe('PSS', () => {
  test('is the token’s where it has the mechanism', () => {
    const { mechanism, message } = request(input, scheme('sha2-256'), proving('rsa-pss'))
    expect([mechanism.type, message.length]).toEqual([CKM.RSA_PKCS_PSS, 32])
  })

  test.each([
    ['with SHA-3', 'sha3-256', proving('rsa-pss', 'rsa-raw')],
    ['of a token that lacks it', 'sha2-256', proving('rsa-raw')],
  ])('%s is encoded here and signed by the raw operation', (_, hash, capabilities) => {
    const { mechanism, message } = request(input, scheme(hash), capabilities)
    expect([mechanism.type, message.length]).toEqual([CKM.RSA_X_509, bytes])
  })

  test.each([
    ['with SHA-3', 'sha3-256', proving('rsa-pss')],
    ['of a token that lacks it', 'sha2-256', proving('rsa-pkcs1')],
  ])('%s is refused by name where the token lacks the raw operation too', (_, hash, capabilities) => {
    expect(() => request(input, scheme(hash), capabilities)).toThrow('the HSM lacks CKM_RSA_X_509')
  })
})

test('without a hash up to 11 bytes less than the modulus are signed, and no more', () => {
  const bare = scheme(undefined, { padding: 'pkcs1v15' })
  const longest = Buffer.alloc(bytes - 11, 1)
  expect(request(longest, bare, proving())).toMatchObject({ mechanism: { type: CKM.RSA_PKCS }, message: longest })
  expect(() => request(Buffer.alloc(bytes - 10), bare, proving())).toThrow('message too long for RSA key size')
})
