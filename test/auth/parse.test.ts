import { describe, expect, test } from 'vitest'
import { capabilityNames } from '../../src/auth/acl/capability.ts'
import { parsePolicy } from '../../src/auth/acl/parse.ts'
import { ApiError } from '../../src/errors.ts'

const rules = (text: string) =>
  parsePolicy(text).paths.map(({ path, capabilities }) => [path, capabilityNames(capabilities).join(' ')])

function refusal(text: string): string {
  try {
    parsePolicy(text)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  throw new Error('was accepted')
}

describe('a policy text', () => {
  test('HCL with comments, escapes, trailing commas and blocks on one line', () => {
    const text = `
      # one
      // two
      /* three
         path "no" {} */
      name = "ignored"
      path "/transit/keys/*" { capabilities = ["read", "list",] }
      path "a\\"b\\u00e9\\n" { policy = "write" } path "x" { }
      path = { "deep" = { capabilities = ["create"] } }
      path "deny" { capabilities = ["read", "deny", "sudo"] }`
    expect(rules(text)).toEqual([
      ['transit/keys/*', 'list read'],
      ['a"bé\n', 'create delete list read update'],
      ['x', ''],
      ['deep', 'create'],
      ['deny', 'deny'],
    ])
  })

  test('JSON, also in the list form of HCL, gives the same rules', () => {
    expect(rules('{"path":{"a/b":{"capabilities":["read"]},"c\\/d":{"policy":"sudo"}}}')).toEqual([
      ['a/b', 'read'],
      ['c/d', 'create delete list read sudo update'],
    ])
    expect(rules('{"name":"n","path":[{"a":{"capabilities":["patch"]}},{"b":[{"capabilities":[]}]}]}')).toEqual([
      ['a', 'patch'],
      ['b', ''],
    ])
  })

  test('the same path twice in a JSON object is read twice, so that a deny is never lost', () => {
    const text = '{"path":{"a":{"capabilities":["deny"]},"a":{"capabilities":["read"]}}}'
    expect(rules(text)).toEqual([
      ['a', 'deny'],
      ['a', 'read'],
    ])
  })

  test('texts of refusals are those of the reference', () => {
    expect(refusal('path "a" { zzz = 1 }')).toBe(
      'failed to parse policy: 1 error occurred:\n\t* path "a": invalid key "zzz" on line 1\n\n',
    )
    expect(refusal('path "a" {\n x = 1\n y = 2 }')).toBe(
      'failed to parse policy: 2 errors occurred:\n\t* path "a": invalid key "x" on line 2\n' +
        '\t* path "a": invalid key "y" on line 3\n\n',
    )
    expect(refusal('zzz "a" {}')).toBe('failed to parse policy: 1 error occurred:\n\t* invalid key "zzz" on line 0\n\n')
    expect(refusal('{"zzz": 1}')).toBe('failed to parse policy: 1 error occurred:\n\t* invalid key "zzz" on line 1\n\n')
    expect(refusal('path "a/+*" { }')).toBe(
      `failed to parse policy: path "a/+*": invalid use of wildcards ('+*' is forbidden)`,
    )
    expect(refusal('path "x" { capabilities = ["zap"] }')).toBe(
      'failed to parse policy: path "x": invalid capability "zap"',
    )
    expect(refusal('path "x" { capabilities = ["scan"] }')).toContain('invalid capability "scan"')
    expect(refusal('path "x" { policy = "admin" }')).toBe('failed to parse policy: path "x": invalid policy "admin"')
    expect(refusal('path "x" { capabilities = ["constructor"] }')).toContain('invalid capability')
    expect(refusal('path "x" { policy = "constructor" }')).toContain('invalid policy')
  })

  test('keys that are not enforced yet are refused by name, never ignored', () => {
    expect(refusal('path "a" {\n mfa_methods = ["m"]\n}')).toBe(
      'failed to parse policy: path "a": key "mfa_methods" on line 2 is not built yet',
    )
    expect(refusal('path "a" { control_group = { factor "x" { identity { approvals = 2 } } } }')).toContain(
      'control_group',
    )
    expect(refusal('path "secret/{{identity.entity.id}}" { policy = "read" }')).toContain('templating')
  })

  test('syntax errors name line and column', () => {
    const at = (text: string) => refusal(text).replace('failed to parse policy: ', '')
    expect(at('path "a" {\n  capabilities = "read"\n}')).toBe(
      'path "a": capabilities must be a list of strings on line 2',
    )
    expect(at('path "a" {\n  capabilities = ["read"\n}')).toBe('At 3:1: expected ",", found "}"')
    expect(at('path "a')).toBe('At 1:6: literal not terminated')
    expect(at('path "a\n" {}')).toBe('At 1:6: literal not terminated')
    expect(at('path "a" {')).toBe('At 1:11: expected a key, found the end')
    expect(at('path "a\\q" {}')).toBe('At 1:6: illegal char escape')
    expect(at('path "a\\UFFFFFFFF" {}')).toBe('At 1:6: illegal char escape')
    expect(at('path "a" { policy = <<EOF\nread\nEOF\n}')).toBe('At 1:21: illegal character "<"')
    expect(at('path "a" { /* ')).toBe('At 1:12: illegal character "/"')
    expect(at('path "a" "b" { }')).toBe('path "a": unexpected "b" on line 1')
    expect(at('path "a" = { }')).toContain('expected "{"')
    expect(at('path: "a"')).toContain('expected "{"')
    expect(at('path "a" { capabilities: ["read"] }')).toContain('expected "{"')
    expect(at('path = "a"')).toBe('"path": expected an object on line 1')
    expect(at('path "a" { capabilities = ["deny"] capabilities = ["read"] }')).toContain('occurs twice')
    expect(at('{"path":{"a":{"capabilities":["deny"],"capabilities":["read"]}}}')).toContain('occurs twice')
    expect(at('{"path":{"a":{"capabilities":["read"]}},}')).toContain('JSON')
    expect(at('{"path":null}')).toContain('expected a value, found "null"')
  })

  test('hostile nesting is refused before it exhausts the stack', () => {
    expect(refusal(`path "a" { capabilities = ${'['.repeat(100_000)}`)).toContain('nested too deeply')
    expect(refusal(`path "a" ${'{ a '.repeat(100_000)}`)).toContain('nested too deeply')
    expect(() => rules(`${'# x\n'.repeat(100_000)} path "a" {}`)).not.toThrow()
  })
})
