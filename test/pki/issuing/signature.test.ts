import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type SignatureName, signatureAlgorithms } from '../../../src/crypto/signaturealgorithm.ts'
import { crlSignatureName, signatureFor } from '../../../src/engines/pki/issuing/signature.ts'

const keys = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey,
  ecdsa: generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey,
  ed25519: generateKeyPairSync('ed25519').publicKey,
} as const

/** A key with every algorithm of its family, the usual one first. */
function able(family: keyof typeof keys, usual: SignatureName) {
  const all = [...signatureAlgorithms.values()].filter((one) => one.family === family).map(({ name }) => name)
  return { publicKey: keys[family], algorithms: [usual, ...all.filter((name) => name !== usual)] }
}
const rsa = able('rsa', 'SHA256WithRSA')
const ecdsa = able('ecdsa', 'ECDSAWithSHA384')
const ed25519 = able('ed25519', 'Ed25519')

test.each([
  [rsa, 0, false, 'SHA256WithRSA'],
  [rsa, 384, false, 'SHA384WithRSA'],
  [rsa, 512, true, 'SHA512WithRSAPSS'],
  // PSS is used whatever the bits are.
  [rsa, 0, true, 'SHA256WithRSAPSS'],
  // Only RSA has a choice.
  [ecdsa, 0, false, 'ECDSAWithSHA384'],
  [ecdsa, 256, true, 'ECDSAWithSHA384'],
  [ed25519, 512, true, 'Ed25519'],
])('%# signature_bits %i and use_pss %s are %s', (key, signatureBits, usePss, name) => {
  expect(signatureFor(key, { signatureBits, usePss })).toBe(name)
})

test('a key that makes one padding alone signs with that', () => {
  const pssAlone = { ...rsa, algorithms: rsa.algorithms.filter((name) => name.endsWith('PSS')) }
  expect(signatureFor(pssAlone, { signatureBits: 384, usePss: false })).toBe('SHA384WithRSAPSS')
})

test('a size that no SHA-2 has is refused for RSA', () => {
  expect(() => signatureFor(rsa, { signatureBits: 100, usePss: false })).toThrow(
    'unsupported hash signature algorithm: 100',
  )
})

describe('a list or an OCSP answer is signed', () => {
  const name = (revocationSignatureAlgorithm: string, algorithms: readonly SignatureName[]) =>
    crlSignatureName({ revocationSignatureAlgorithm }, { algorithms })

  test('by the issuer’s setting, or else the usual one of its key', () => {
    expect(name('SHA512WithRSAPSS', rsa.algorithms)).toBe('SHA512WithRSAPSS')
    expect(name('', rsa.algorithms)).toBe('SHA256WithRSA')
    expect(name('', ecdsa.algorithms)).toBe('ECDSAWithSHA384')
    expect(name('SHA256WithRSA', ecdsa.algorithms)).toBe('ECDSAWithSHA384')
  })

  test('by the padding that the key knows, where it knows one alone', () => {
    const pss = rsa.algorithms.filter((one) => one.endsWith('PSS'))
    const plain = rsa.algorithms.filter((one) => !one.endsWith('PSS'))
    expect(name('', pss)).toBe('SHA256WithRSAPSS')
    expect(name('SHA384WithRSA', pss)).toBe('SHA384WithRSAPSS')
    expect(name('SHA384WithRSAPSS', plain)).toBe('SHA384WithRSA')
  })

  test('by no key that signs nothing', () => {
    expect(() => name('', [])).toThrow('the key of this issuer cannot sign revocation lists')
  })
})
