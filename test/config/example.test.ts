import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Node } from '../../src/config/node.ts'
import { parseText, typed } from '../../src/config/read.ts'
import { schema } from '../../src/config/schema.ts'
import { parseConfig } from '../../src/config.ts'

const text = readFileSync(new URL('../../docs/strongroom.example.yaml', import.meta.url), 'utf8')

/** Paths of all fields that are no section. */
function fields(node: Node, path = ''): string[] {
  if (node.items) return fields(node.items, path)
  if (!node.properties) return [path]
  return Object.entries(node.properties).flatMap(([key, part]) => fields(part, path === '' ? key : `${path}.${key}`))
}

test('the example configuration is valid and unwise in nothing', () => {
  expect(parseConfig(text, {}).warnings).toEqual([])
})

test('the example shows every field that there is, commented where it excludes another', () => {
  const missing = fields(schema as Node).filter((path) => {
    const name = path.split('.').at(-1) ?? ''
    return !new RegExp(`^[ #-]*${name}:`, 'm').test(text)
  })
  expect(missing).toEqual([])
})

test('the example shows the defaults', () => {
  const shown = parseConfig(text, {}).config
  const { listeners, database, pkcs11, pkcs11Libraries, ...rest } = shown
  const smallest = `database: { url: '${shown.database.url}' }\npkcs11: { library: a, token: { slot: 0 }, pin: { prompt: true } }`
  const defaults = parseConfig(smallest, {}).config
  expect(defaults).toMatchObject(rest)
  expect(database.poolSize).toBe(defaults.database.poolSize)
  expect(pkcs11).toMatchObject({ executor: 'auto', threads: 4, callDeadlineSeconds: 10 })
  expect(pkcs11Libraries[0]).toMatchObject({ threads: 4, callDeadlineSeconds: 10 })
  expect(listeners[0]?.maxRequestBytes).toBe(defaults.listeners[0]?.maxRequestBytes)
  expect(typed(schema as Node, parseText('workers: 3'))).toEqual({ workers: 3 })
})
