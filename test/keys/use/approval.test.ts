import { describe, expect, test } from 'vitest'
import { hashes, hashOf } from '../../../src/crypto/hashes.ts'
import { algorithms } from '../../../src/keys/algorithms.ts'
import { Approval } from '../../../src/keys/use/approval.ts'

const types = [...algorithms.values()]
const refused = <T extends { name: string }>(all: readonly T[], check: (one: T) => void): string[] =>
  all.flatMap((one) => {
    try {
      check(one)
      return []
    } catch (error) {
      return [String(error instanceof Error ? error.message : error)]
    }
  })
const warnings = (approval: Approval, ...used: Parameters<Approval['warn']>[1][]): string[] => {
  const said: string[] = []
  approval.warn((text) => said.push(text), ...used)
  return said
}

describe('FIPS mode', () => {
  const fips = new Approval(true)

  test('refuses new keys of types that FIPS 140 does not approve, and no others', () => {
    expect(refused(types, (type) => fips.checkNew(type))).toEqual([
      'FIPS mode: chacha20-poly1305 keys are not approved',
      'FIPS mode: ed25519 keys are not approved',
    ])
  })

  test('refuses signatures with SHA-1, and with no other hash', () => {
    const all = [...hashes.values()]
    expect(refused(all, (hash) => fips.checkSigning(hash))).toEqual(['FIPS mode: sha1 signatures are not approved'])
    expect(() => fips.checkSigning(undefined)).not.toThrow()
  })

  test('warns of what is used and not approved', () => {
    expect(warnings(fips, ...types)).toEqual([
      'FIPS mode: chacha20-poly1305 is not approved',
      'FIPS mode: ed25519 is not approved',
    ])
    expect(warnings(fips, undefined, hashOf('sha2-256'))).toEqual([])
  })
})

test('without FIPS mode nothing is refused, and nothing warned of', () => {
  const free = new Approval(false)
  expect(refused(types, (type) => free.checkNew(type))).toEqual([])
  expect(refused([...hashes.values()], (hash) => free.checkSigning(hash))).toEqual([])
  expect(warnings(free, ...types)).toEqual([])
})
