import { beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/engines/transit/index.ts'
import type { Lenient } from '../../../src/field.ts'
import { base64, done, fresh, hello, useNode } from '../node.ts'

/**
 * Every field of every route with senseless values, on keys of several kinds. Generated from the route table: a 4xx
 * with a text, never a server fault, and a wrong type is refused by the field's name before anything is done.
 */
const node = useNode()
const kinds = [
  { type: 'aes256-gcm96' },
  { type: 'aes256-gcm96', derived: true, convergent_encryption: true },
  { type: 'rsa-2048' },
  { type: 'ed25519', derived: true },
  { type: 'ecdsa-p256' },
  { type: 'hmac' },
] as const
const names: string[] = []
beforeAll(async () => {
  for (const settings of kinds) names.push(await node.key(settings))
}, 60_000)

const wrongTypes: Partial<Record<Lenient, readonly unknown[]>> = {
  string: [{}, [], [hello]],
  integer: ['x', 1.5, {}, [], '1e3', 2 ** 60],
  boolean: ['maybe', {}, []],
  duration: ['x', {}, [], '-5s'],
}

/** Senseless values of the right type: invalid base64, wrong lengths, versions and names that do not exist. */
const senseless: Partial<Record<Lenient, readonly unknown[]>> = {
  string: [
    '',
    '!',
    'AA',
    'vault:v1:',
    'vault:v9:AAAA',
    'vault:v1:AAAA',
    '__proto__',
    base64(Buffer.alloc(13)),
    '\u0000',
  ],
  integer: [0, -1, 1, 2, 99, 2 ** 31, Number.MAX_SAFE_INTEGER],
  boolean: [true],
  raw: [
    'x',
    5,
    true,
    {},
    [],
    [5],
    [[]],
    [null],
    [{}],
    [{ input: 5 }],
    [{ input: '!', ciphertext: '!', plaintext: '!' }],
  ],
}

/** Good values for the other fields, so that the spoiled one decides. */
const good: Readonly<Record<string, unknown>> = {
  ...{ plaintext: hello, input: hello, context: hello, ciphertext: 'vault:v1:AAAA', signature: 'vault:v1:AAAA' },
}

const cases = routes
  .filter(({ method }) => method === 'POST')
  .map(({ path, body }) => [path, body.properties as Readonly<Record<string, { lenient: Lenient }>>] as const)

const urlOf = (path: string, name: string, fields: Readonly<Record<string, string>> = {}): string =>
  `transit/${path.replace(/:(\w+)\*?/g, (_, field: string) => (field === 'name' ? name : (fields[field] ?? captures[field] ?? name)))}`
const captures: Readonly<Record<string, string>> = {
  ...{ type: 'plaintext', hash_algorithm: 'sha2-256', algorithm: 'sha2-256', first: '8', source: 'seal', bytes: '8' },
}

describe.each(cases)('POST %s', (path, properties) => {
  // Fields given by the path are ignored in the body.
  const fields = Object.entries(properties).filter(([field]) => !path.split(/[/:*]/).includes(field))
  const sent = Object.fromEntries(fields.filter(([name]) => name in good).map(([name]) => [name, good[name]]))
  // Requests that make a key need a new name each.
  const target = (name: string) => (path === 'keys/:name' || path.startsWith('restore') ? fresh('k') : name)

  test('refuses a wrong type by the field’s name', async () => {
    for (const [field, { lenient }] of fields) {
      for (const value of wrongTypes[lenient] ?? []) {
        const reply = await node.root.post(urlOf(path, target(names[0] ?? '')), { ...sent, [field]: value })
        expect(reply.status, `${field} ${JSON.stringify(value)}: ${reply.text}`).toBe(400)
        expect(reply.text).toContain(`for field \\"${field}\\"`)
      }
    }
  })

  test('answers senseless values with an explanation', { timeout: 60_000 }, async () => {
    for (const name of names) {
      for (const [field, { lenient }] of fields) {
        for (const value of senseless[lenient] ?? []) {
          const reply = await node.root.post(urlOf(path, target(name)), { ...sent, [field]: value })
          expect(reply.status, `${field} ${JSON.stringify(value)}: ${reply.text}`).toBeLessThan(500)
          if (reply.status < 400) continue
          const { errors } = reply.body as { errors: string[] }
          if (reply.status !== 404) expect(errors[0], reply.text).toMatch(/\w{2,}\W+\w{2,}/)
        }
      }
    }
  })
})

test('none of it was a server fault, and every key still works', async () => {
  expect(node.server.output()).not.toMatch(/server fault/)
  for (const name of names) await done(node.root.post(`transit/hmac/${name}`, { input: hello }))
})
