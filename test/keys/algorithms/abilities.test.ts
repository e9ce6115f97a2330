import { expect, test } from 'vitest'
import { algorithms, pairAlgorithm } from '../../../src/keys/algorithms.ts'

/** What the keys of each type can do, as key read shows it and as export and derivation believe it. */

const p224 = pairAlgorithm('ecdsa-p224')
const types = [...algorithms.values(), ...(p224 === undefined ? [] : [p224])]

test('every type says that it encrypts exactly if it has a way to', () => {
  const wrong = types.filter(({ abilities, aead, oaep }) => abilities.encrypt !== Boolean(aead ?? oaep))
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('every type says that it signs exactly if it has a way to', () => {
  const wrong = types.filter(({ abilities, signature }) => abilities.sign !== Boolean(signature))
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('keys are derived from those of AEADs and from Ed25519 seeds alone', () => {
  const deriving = types.filter(({ abilities }) => abilities.derive).map(({ name }) => name)
  expect(deriving.toSorted()).toEqual(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'ed25519'])
})

test('an encryption key is exported of types that encrypt, a signing key of types that sign', () => {
  for (const { name, abilities, exports, mac } of types) {
    expect('encryption-key' in exports, name).toBe(abilities.encrypt)
    if (mac === undefined) expect('signing-key' in exports, name).toBe(abilities.sign)
  }
})
