import { expect, test } from 'vitest'
import { freshIv } from '../../../src/keys/use/iv.ts'

test('every IV has 12 bytes and none comes twice, however many are taken', () => {
  const ivs = Array.from({ length: 2000 }, () => freshIv().toString('hex'))
  expect(ivs.filter((iv) => iv.length !== 24)).toEqual([])
  expect(new Set(ivs).size).toBe(ivs.length)
})

test('an IV that was given out does not change when later ones are made', () => {
  const iv = freshIv()
  const before = iv.toString('hex')
  for (let count = 0; count < 1000; count++) freshIv()
  expect(iv.toString('hex')).toBe(before)
})
