import { describe, expect, test } from 'vitest'
import { pairAlgorithm } from '../../../src/keys/algorithms.ts'
import { privateTemplate } from '../../../src/keys/making/making.ts'

const usages = (type: string, part?: string) => {
  const algorithm = pairAlgorithm(type)
  if (algorithm === undefined) throw new Error(`no pair ${type}`)
  return privateTemplate(algorithm, part).usages
}

describe('a private key may', () => {
  test('decrypt only, where imports are encrypted to it', () => {
    expect(usages('rsa-4096', 'wrapping')).toEqual(['decrypt'])
  })

  test('sign only, where it signs certificates', () => {
    for (const type of ['rsa-4096', 'ecdsa-p256']) expect(usages(type, 'authority')).toEqual(['sign'])
  })

  test('do what its type is for, where users use it', () => {
    expect(usages('rsa-4096', 'key')).toEqual(['sign', 'decrypt'])
    expect(usages('rsa-4096')).toEqual(['sign', 'decrypt'])
    expect(usages('ecdsa-p256', 'key')).toEqual(['sign'])
  })
})
