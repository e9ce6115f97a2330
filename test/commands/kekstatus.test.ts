import { expect, test } from 'vitest'
import { kekLines, statusLines } from '../../src/commands/kekstatus.ts'
import type { KekStatus } from '../../src/keys/cluster/rotation.ts'

const kek = (facts: Partial<KekStatus>): KekStatus => ({
  ...{ id: '0198', purpose: 'use', state: 'active', origin: 'components', checkValue: 'aa', createdAt: 0 },
  ...{ here: true, keys: 3, unproven: [], lacking: [] },
  ...facts,
})

const warned = (...keks: KekStatus[]) =>
  statusLines({ rowKey: 'bb', keks, lone: [] }).find((line) => line.startsWith('These KEKs'))

test('KEKs without components are named: active ones, and retiring ones that still have keys', () => {
  const generated = (facts: Partial<KekStatus>) => kek({ origin: 'generated', ...facts })
  expect(warned(kek({}), kek({ state: 'retiring' }))).toBeUndefined()
  expect(warned(kek({}), generated({ state: 'retiring', keys: 0 }))).toBeUndefined()
  expect(warned(kek({}), generated({ state: 'pending', keys: 0 }))).toBeUndefined()
  expect(
    warned(generated({ keys: 0 }), generated({ state: 'retiring', purpose: 'open' }), kek({ purpose: 'export' })),
  ).toBe('These KEKs have no components: active use, retiring open. The keys under them are lost with the token.')
})

test('keys that live in a token alone are named, with whether this is the token', () => {
  const lone = [
    { name: 'pki/keys/a', here: true },
    { name: 'pki/keys/b', here: false },
  ]
  expect(statusLines({ rowKey: 'bb', keks: [], lone })).toEqual([
    'row key  check value bb, keep it with the components: kek adopt asks for it',
    'only in this token: pki/keys/a',
    'not in this token: pki/keys/b',
  ])
})

test('a pending KEK says which workers it waits for, one that lacks guards how it is replaced', () => {
  expect(kekLines(kek({ state: 'pending', checkValue: '', here: false, unproven: ['a', 'b'] }))).toEqual([
    'use     pending   0198  check value none yet, from components, not in this token, 3 keys',
    '        waits for: a, b',
  ])
  expect(kekLines(kek({ state: 'pending' }))).toHaveLength(2)
  expect(kekLines(kek({ lacking: ['CKA_DERIVE'] }))).toEqual([
    'use     active    0198  check value aa, from components, in this token, 3 keys',
    '        its token does not enforce CKA_DERIVE on the keys that it unwraps: kek rotate replaces it',
  ])
})
