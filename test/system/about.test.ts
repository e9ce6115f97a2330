import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, useNode } from '../api/node.ts'
import { readContract } from '../support/answers.ts'
import type { Reply } from '../support/client.ts'
import { type ApiDocument, declaredAnswers, documentedAnswers } from '../support/openapi.ts'

const node = useNode()
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly security?: readonly unknown[]
  readonly requestBody?: { readonly content: Record<string, { schema: { properties: Record<string, object> } }> }
}
type Document = Omit<ApiDocument, 'paths'> & {
  readonly openapi: string
  readonly paths: Record<string, Record<string, Operation>>
}

describe('sys/internal/specs/openapi', () => {
  const fetched = async () => (await done(node.server.client('').get('sys/internal/specs/openapi'))).body as Document
  const operationsOf = ({ paths }: Document) =>
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([verb, operation]) => (verb === 'parameters' ? [] : [{ path, verb, operation }])),
    )

  test('is a valid OpenAPI 3.0 document, for whoever asks', async () => {
    const document = await fetched()
    const result = await new Validator().validate({ ...structuredClone(document) })
    expect(result.errors ?? []).toEqual([])
    expect(result.valid).toBe(true)
    expect(document.openapi).toBe('3.0.3')
  })

  test('has for each route the answers that the client of the tests checks every answer against, and no others', async () => {
    const declared = declaredAnswers(readContract())
    expect(Object.keys(declared).length).toBeGreaterThan(200)
    const documented = documentedAnswers(await fetched())
    const heads = Object.keys(documented).filter((operation) => operation.startsWith('head '))
    // HEAD without a declaration of its own is answered as GET is.
    const asGet = heads.map((operation) => [operation, declared[operation.replace('head', 'get')]] as const)
    expect(documented).toEqual({ ...Object.fromEntries(asGet), ...declared })
  })

  test('names no operation twice and no two templates that are the same path', async () => {
    const document = await fetched()
    const ids = operationsOf(document).map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'))
    expect(new Set(shapes).size).toBe(shapes.length)
  })

  test('shows every engine under its default path, with one sentence for each path and field', async () => {
    const document = await fetched()
    const encrypt = document.paths['/transit/encrypt/{name}']?.post
    expect(Object.keys(encrypt?.requestBody?.content['application/json']?.schema.properties ?? {})).toContain(
      'plaintext',
    )
    expect(document.paths['/sys/mounts/{path}/tune']).toHaveProperty('post')
    expect(document.paths['/transit/keys/']).toHaveProperty('get')
    expect(document.paths['/sys/health']?.get?.security).toEqual([])
    expect(document.paths['/auth/token/create']?.post).not.toHaveProperty('security')
    for (const { path, verb, operation } of operationsOf(document)) {
      expect(operation.summary, `${verb} ${path}`).toMatch(/^[A-Z].*\.$/)
    }
  })

  test('shows no mount of this installation', async () => {
    const path = fresh('hidden')
    await done(node.root.post(`sys/mounts/${path}`, { type: 'transit' }))
    expect(JSON.stringify(await fetched())).not.toContain(path)
  })

  test('has no path that is not answered', async () => {
    const wrong: string[] = []
    for (const { path } of operationsOf(await fetched())) {
      const filled = path.replace('reload/{type}', 'reload/secret')
      const reply = await node.root.get(`${filled.slice(1).replace(/\{\w+\}/g, 'a')}?help=1`)
      if (reply.status !== 200) wrong.push(`${path}: ${reply.status}`)
    }
    expect(wrong).toEqual([])
  })
})

describe('?help=1', () => {
  const help = (path: string, client = node.root) => client.get(`${path}?help=1`)
  const textOf = (reply: Reply) => reply.string('help')

  test('tells of a path what it does, what it takes, and its part of the OpenAPI document', async () => {
    const reply = await done(help('transit/encrypt/k'))
    expect(Object.keys(reply.body as object)).toEqual(['help', 'see_also', 'openapi'])
    expect(textOf(reply)).toContain('Request: POST transit/encrypt/:name')
    expect(textOf(reply)).toMatch(/plaintext \(type: string\)\n {8}\S/)
    const { paths } = (reply.body as { openapi: Document }).openapi
    expect(Object.keys(paths)).toEqual(['/transit/encrypt/{name}'])
  })

  test('runs nothing, whatever the method', async () => {
    const name = await node.key()
    expect((await node.root.call('DELETE', `transit/keys/${name}?help=1`)).status).toBe(200)
    expect((await node.root.call('POST', `transit/keys/${name}-new?help=1`, {})).status).toBe(200)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(200)
    expect((await node.root.get(`transit/keys/${name}-new`)).status).toBe(404)
  })

  test('of a mount lists its paths', async () => {
    for (const path of ['transit', 'transit/']) {
      expect(textOf(await done(help(path)))).toContain('LIST transit/keys\n')
    }
    expect(textOf(await done(help('sys')))).toContain('POST sys/remount')
  })

  test('is a parameter like any other when it is empty', async () => {
    expect((await node.root.get('sys/mounts?help=')).body).toHaveProperty('data')
  })

  test('needs a token, and tells who may do nothing in a mount nothing', async () => {
    expectRefused(await help('transit/keys/a', node.server.client('')), 403, 'permission denied')
    const mount = await node.mount()
    const client = await node.limited(`path "${mount}/encrypt/a" { capabilities = ["update"] }`)
    expect((await help(`${mount}/keys/a`, client)).status).toBe(200)
    const text = '1 error occurred:\n\t* permission denied\n\n'
    expectRefused(await help('transit/keys/a', client), 403, text)
    expectRefused(await help('nomount/a', client), 403, text)
    expect((await help('nomount/a')).status).toBe(404)
    expect((await help('transit/no/such/path')).status).toBe(404)
  })
})

test('sys/version-history lists the API level since the cluster was made', async () => {
  const { body } = await node.root.list('sys/version-history')
  expect(body).toMatchObject({
    data: {
      keys: ['1.13.0'],
      key_info: { '1.13.0': { previous_version: null, timestamp_installed: expect.stringMatching(/^20\d\d-.*Z$/) } },
    },
  })
  expect((await node.root.get('sys/version-history')).status).toBe(405)
})

test('sys/host-info and sys/ha-status tell of this node, to whoever has a rule for them', async () => {
  const { body } = await node.root.get('sys/host-info')
  expect(body).toMatchObject({
    data: {
      host: { hostname: expect.any(String) },
      cpu: expect.arrayContaining([{ cpu: 0, modelName: expect.any(String), mhz: expect.any(Number) }]),
      memory: { total: expect.any(Number) },
    },
  })
  const status = await node.root.get('sys/ha-status')
  const nodes = [expect.objectContaining({ active_node: true, version: '1.13.0' })]
  expect(status.body).toMatchObject({ data: { nodes }, nodes })
  const client = await node.limited('path "sys/health" { capabilities = ["read"] }')
  for (const path of ['sys/host-info', 'sys/ha-status']) expect((await client.get(path)).status).toBe(403)
})
