import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { describeApi } from '../../src/request/openapi/document.ts'
import { routes } from './authority.ts'

const document = describeApi([{ prefix: 'pki', tag: 'pki', routes }], '1')
type Operation = Readonly<Record<string, unknown>>
const { paths } = document as { paths: Record<string, Record<string, Operation>> }
const at = (path: string) => paths[`/pki/${path}`] ?? {}

test('a document with raw paths, bytes and files is valid', async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect([result.errors ?? [], result.valid]).toEqual([[], true])
  const ids = Object.values(paths).flatMap((item) => Object.values(item).flatMap(({ operationId: id = [] }) => id))
  expect(new Set(ids).size).toBe(ids.length)
})

test('a body of bytes and an answer of bytes are shown by their types, without a schema', () => {
  expect(at('ocsp').post).toMatchObject({
    requestBody: {
      required: true,
      description: 'At most 2048 bytes, with any Content-Type.',
      content: { 'application/ocsp-request': {} },
    },
    responses: { 200: { content: { 'application/ocsp-response': {} } } },
  })
  expect(at('cert/crl').get?.responses).toMatchObject({ 200: { content: { 'application/json': { schema: {} } } } })
})

test('a raw rest is described as containing slashes', () => {
  expect(at('ocsp/{request}').parameters).toEqual([
    {
      name: 'request',
      in: 'path',
      required: true,
      schema: { type: 'string' },
      description: expect.stringContaining('slashes'),
    },
  ])
})

test('a public GET is shown with its HEAD, others are not', () => {
  expect(Object.keys(at('crl'))).toEqual(expect.arrayContaining(['get', 'head']))
  expect(at('secret')).not.toHaveProperty('head')
})
