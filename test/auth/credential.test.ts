import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { TokenCaller } from '../../src/auth/caller.ts'
import { checkCustom, fingerprint, guessFilter, newAccessor } from '../../src/auth/credential.ts'
import type { TokenRow } from '../../src/auth/token.ts'

const filter = guessFilter(randomBytes(32))

describe('a credential', () => {
  test('has the form of a service token, and is another each time', () => {
    const many = Array.from({ length: 200 }, () => filter.issue())
    expect(new Set(many).size).toBe(200)
    for (const credential of many) {
      expect(credential).toMatch(/^hvs\.[0-9A-Za-z]{32}$/)
      expect(filter.screen(credential)).toBe('ours')
    }
    expect(newAccessor()).toMatch(/^[0-9A-Za-z]{24}$/)
  })

  test('changed in any one character is recognised as forged', () => {
    const credential = filter.issue()
    for (let at = 4; at < credential.length; at++) {
      const other = credential[at] === 'a' ? 'b' : 'a'
      expect(filter.screen(credential.slice(0, at) + other + credential.slice(at + 1))).toBe('forged')
    }
    expect(guessFilter(randomBytes(32)).screen(credential)).toBe('forged')
    for (const text of [
      '',
      'hvs.',
      'hvs.x',
      `${credential}a`,
      credential.slice(0, -1),
      `${credential.slice(0, -1)}é`,
      'a b',
      'é',
    ])
      expect(filter.screen(text), text).toBe('forged')
  })

  test('a chosen text cannot be mistaken for one of ours', () => {
    expect(filter.screen('root')).toBe('custom')
    expect(filter.screen('s.oldtoken')).toBe('custom')
    expect(() => checkCustom('dev-root')).not.toThrow()
    for (const text of ['', 'hvs.mine', filter.issue(), 'a b', 'a\n', 'é', 'x'.repeat(256)])
      expect(() => checkCustom(text), text).toThrow()
  })

  test('is remembered by its hash, not by itself', () => {
    expect(fingerprint('root')).toHaveLength(44)
    expect(fingerprint('root')).not.toBe(fingerprint('Root'))
  })

  test('is not visible in the caller that carries it', () => {
    const row = { id: 'id', accessor: 'accessor', displayName: 'token', policies: ['default'] } as unknown as TokenRow
    const caller = new TokenCaller(row, 'hvs.secret', String)
    expect(TokenCaller.credentialOf(caller)).toBe('hvs.secret')
    for (const shown of [
      JSON.stringify(caller),
      inspect(caller, { showHidden: true, depth: 9 }),
      JSON.stringify({ ...caller }),
    ])
      expect(shown).not.toContain('secret')
    expect(() => TokenCaller.credentialOf({ ...caller, maker: '' })).toThrow(TypeError)
  })
})
