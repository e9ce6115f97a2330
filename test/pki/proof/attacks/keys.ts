import { generateKeyPairSync } from 'node:crypto'
import { asn1, write, writeNumber } from '../../../../src/crypto/der.ts'
import { writeOid } from '../../../../src/crypto/oid.ts'
import { ecPair, forge, rsaWithSha256, text } from '../forge.ts'
import { type Attack, sequence } from './attack.ts'

const rsa = (modulusLength: number, publicExponent: number) => {
  const key = generateKeyPairSync('rsa', { modulusLength, publicExponent })
  return forge({ key, algorithm: rsaWithSha256 })
}
const rsaNumbers = (modulus: Buffer, exponent: Buffer) =>
  sequence(
    sequence(writeOid('1.2.840.113549.1.1.1'), write(asn1.null)),
    write(asn1.bitString, Buffer.alloc(1), sequence(writeNumber(modulus), writeNumber(exponent))),
  )
const modulus = Buffer.concat([Buffer.from([0xc1]), Buffer.alloc(254, 0x5a), Buffer.from([0x01])])
const point = ecPair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-65)
const ecKey = (parameters: Buffer, encoded: Buffer = point) =>
  sequence(sequence(writeOid('1.2.840.10045.2.1'), parameters), write(asn1.bitString, Buffer.alloc(1), encoded))
const p256 = writeOid('1.2.840.10045.3.1.7')

/** Requests whose key is weak, or no key. */
export const keyAttacks: readonly Attack[] = [
  { name: 'RSA of 1,024 bits', csr: rsa(1024, 65537) },
  { name: 'RSA of 512 bits', csr: rsa(512, 65537) },
  { name: 'RSA with exponent 3', csr: rsa(2048, 3) },
  { name: 'RSA with a 16-bit exponent', csr: rsa(2048, 65535 - 2) },
  { name: 'RSA with exponent 1', csr: forge({ spki: rsaNumbers(modulus, Buffer.from([1])) }) },
  { name: 'RSA with exponent 0', csr: forge({ spki: rsaNumbers(modulus, Buffer.alloc(0)) }) },
  { name: 'RSA with an even exponent', csr: forge({ spki: rsaNumbers(modulus, Buffer.from([2])) }) },
  { name: 'RSA with an exponent as long as the modulus', csr: forge({ spki: rsaNumbers(modulus, modulus) }) },
  {
    name: 'RSA with an even modulus',
    csr: forge({
      spki: rsaNumbers(Buffer.concat([modulus.subarray(0, 255), Buffer.from([2])]), Buffer.from([1, 0, 1])),
    }),
  },
  { name: 'RSA with a modulus of zero', csr: forge({ spki: rsaNumbers(Buffer.alloc(0), Buffer.from([1, 0, 1])) }) },
  {
    name: 'RSA of 65,536 bits',
    csr: forge({
      spki: rsaNumbers(Buffer.concat([Buffer.alloc(8191, 0xc1), Buffer.from([1])]), Buffer.from([1, 0, 1])),
    }),
  },
  {
    name: 'RSA with a NULL that is not empty',
    csr: forge({
      spki: sequence(
        sequence(writeOid('1.2.840.113549.1.1.1'), write(asn1.null, Buffer.from('smuggled'))),
        write(asn1.bitString, Buffer.alloc(1), sequence(writeNumber(modulus), writeNumber(Buffer.from([1, 0, 1])))),
      ),
    }),
  },
  {
    name: 'a curve by explicit parameters',
    csr: forge({ key: generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' }) }),
  },
  { name: 'implicit curve parameters', csr: forge({ spki: ecKey(write(asn1.null)) }) },
  { name: 'no curve', csr: forge({ spki: ecKey(Buffer.alloc(0)) }) },
  { name: 'secp256k1', csr: forge({ key: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }) }) },
  { name: 'brainpool', csr: forge({ key: generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' }) }) },
  { name: 'P-192', csr: forge({ key: generateKeyPairSync('ec', { namedCurve: 'prime192v1' }) }) },
  {
    name: 'a point that is not on its curve',
    csr: forge({ spki: ecKey(p256, Buffer.concat([point.subarray(0, 64), Buffer.from([(point[64] ?? 0) ^ 1])])) }),
  },
  { name: 'the point at infinity', csr: forge({ spki: ecKey(p256, Buffer.from([0])) }) },
  {
    name: 'a compressed point',
    csr: forge({
      spki: ecKey(p256, Buffer.concat([Buffer.from([2 + ((point[64] ?? 0) & 1)]), point.subarray(1, 33)])),
    }),
  },
  {
    name: 'a point with bytes after it',
    csr: forge({ spki: ecKey(p256, Buffer.concat([point, Buffer.from('smuggled')])) }),
  },
  {
    name: 'an Ed25519 point of small order',
    csr: forge({
      spki: sequence(
        sequence(writeOid('1.3.101.112')),
        write(asn1.bitString, Buffer.alloc(1), Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])),
      ),
    }),
  },
  {
    name: 'Ed448',
    csr: forge({ key: generateKeyPairSync('ed448'), algorithm: sequence(writeOid('1.3.101.113')), hash: null }),
  },
  {
    name: 'X25519',
    csr: forge({ spki: sequence(sequence(writeOid('1.3.101.110')), write(asn1.bitString, Buffer.alloc(33, 0))) }),
  },
  { name: 'DSA', csr: forge({ key: generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }) }) },
  {
    name: 'a key and more',
    csr: forge({ spki: sequence(...[ecKey(p256)].map((spki) => spki.subarray(2)), text('smuggled')) }),
  },
]
