import { constants, generateKeyPairSync, privateDecrypt, publicEncrypt, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Hash, hashes, hashOf } from '../../src/crypto/hashes.ts'
import { mgf1, xor } from '../../src/crypto/mgf.ts'
import { decodeOaep, decodeOaepOr, mostOaepBytes } from '../../src/crypto/oaep.ts'

const size = 256
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 8 * size })
const sha256 = hashOf('sha2-256')

/** The block that OpenSSL's encryption makes of a message, as a token's raw operation gives it. */
function blockOf(message: Uint8Array, hash: Hash): Buffer {
  const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: hash.node }
  const ciphertext = publicEncrypt({ key: publicKey, ...padding }, message)
  return privateDecrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, ciphertext)
}

/** The block with its data part changed before it was masked. */
function tampered(message: Uint8Array, change: (data: Buffer) => void): Buffer {
  const block = blockOf(message, sha256)
  const [seed, data] = [block.subarray(1, 33), block.subarray(33)]
  xor(seed, mgf1(data, 32, sha256))
  xor(data, mgf1(seed, data.length, sha256))
  change(data)
  xor(data, mgf1(seed, data.length, sha256))
  xor(seed, mgf1(data, 32, sha256))
  return block
}

const substitute = Buffer.alloc(32, 7)

describe('OAEP decoding', () => {
  it.each([...hashes.values()].map((hash) => [hash.name, hash] as const))(
    'gives back what OpenSSL encoded with %s, at every length',
    (_, hash) => {
      const most = mostOaepBytes(size, hash)
      for (const length of [0, 1, 32, most - 1, most]) {
        const message = randomBytes(length)
        expect(decodeOaep(blockOf(message, hash), hash)).toEqual(message)
      }
    },
  )

  it('gives back any message', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 190 }), (message) => {
        expect(decodeOaep(blockOf(message, sha256), sha256)).toEqual(Buffer.from(message))
      }),
      { numRuns: 50 },
    )
  })

  it('finds any changed byte', () => {
    const message = randomBytes(60)
    for (let at = 0; at < size; at++) {
      const block = blockOf(message, sha256)
      block[at] = (block[at] ?? 0) ^ 1
      expect(decodeOaep(block, sha256), `byte ${at}`).toBeUndefined()
    }
  })

  it.each([
    ['a label that is not the empty one', (data: Buffer) => data.fill(0, 0, 32)],
    ['no 01 at all', (data: Buffer) => data.fill(0, 32)],
    ['another byte where the 01 should be', (data: Buffer) => data.fill(2, 32)],
    ['a byte among the zeros', (data: Buffer) => data.fill(0x80, 32, 33)],
    ['ones in the place of all zeros, and no end', (data: Buffer) => data.fill(0xff, 32)],
  ])('refuses %s', (_, change) => {
    expect(decodeOaep(tampered(randomBytes(32), change), sha256)).toBeUndefined()
    expect(decodeOaepOr(tampered(randomBytes(32), change), sha256, substitute)).toEqual(substitute)
  })

  it('refuses what was encoded with another hash', () => {
    expect(decodeOaep(blockOf(randomBytes(9), hashOf('sha1')), sha256)).toBeUndefined()
  })

  it('takes a 01 right behind the label, and one at the very end', () => {
    const message = randomBytes(mostOaepBytes(size, sha256))
    expect(decodeOaep(blockOf(message, sha256), sha256)).toEqual(message)
    expect(decodeOaep(blockOf(Buffer.alloc(0), sha256), sha256)).toEqual(Buffer.alloc(0))
  })
})

describe('OAEP decoding with a substitute', () => {
  it('gives the key when there is one of its length', () => {
    const key = randomBytes(32)
    expect(decodeOaepOr(blockOf(key, sha256), sha256, substitute)).toEqual(key)
  })

  it.each([0, 1, 16, 31, 33, 64, 190])('gives the substitute for %i bytes', (length) => {
    expect(decodeOaepOr(blockOf(randomBytes(length), sha256), sha256, substitute)).toEqual(substitute)
  })

  it('gives the substitute for any changed byte', () => {
    for (let at = 0; at < size; at += 3) {
      const block = blockOf(randomBytes(32), sha256)
      block[at] = (block[at] ?? 0) ^ 0x80
      expect(decodeOaepOr(block, sha256, substitute), `byte ${at}`).toEqual(substitute)
    }
  })
})
