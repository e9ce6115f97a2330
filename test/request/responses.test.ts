import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { auth, bare, bytes, data, done, mapOf, noData, orNull, titled } from '../../src/answers.ts'
import { type NamedSchemas, responsesOf } from '../../src/request/openapi/responses.ts'
import { type Route, route } from '../../src/route.ts'

const frame = { $ref: '#/components/schemas/Answer' }
const refused = { default: { $ref: '#/components/responses/Refused' } }

/** The responses of a route with these answers, and the schemas that they name. */
function shown(answers: Route<unknown>['answers'], inject = false) {
  const named: NamedSchemas = new Map()
  const fields = { method: 'GET', path: 'a', access: 'token', about: 'For the test.', body: Type.Object({}) } as const
  const responses = responsesOf(route({ ...fields, answers, inject, run: () => undefined }), named)
  return { responses, named: Object.fromEntries(named) }
}

/** The schema of the JSON of a 200 from a route with these answers. */
function schemaOf(answers: Route<unknown>['answers'], inject = false): unknown {
  const { responses } = shown(answers, inject)
  expect(responses).toMatchObject({ 200: { content: { 'application/json': {} } } })
  const { 200: success } = responses as { 200: { content: Record<string, { schema: unknown }> } }
  return success.content['application/json']?.schema
}

const inFrame = (properties: object) => ({ allOf: [frame, { type: 'object', properties }] })
const word = { type: 'string' }
const sum = { type: 'object', required: ['sum'], properties: { sum: word } }

describe('the responses of a route', () => {
  test('are its statuses, and the refusal that every route has', () => {
    const { responses } = shown([...done, ...noData(202)])
    const json = { content: { 'application/json': { schema: frame } } }
    expect(responses).toEqual({
      200: { description: 'Done.', ...json },
      202: { description: 'Done.', ...json },
      204: { description: 'Done, without a body.' },
      ...refused,
    })
    expect(shown([]).responses).toEqual(refused)
  })

  test('have data and auth in the envelope, and other objects without it', () => {
    const object = Type.Object({ sum: Type.String() })
    expect(schemaOf(data(object))).toEqual(inFrame({ data: sum }))
    expect(schemaOf(auth(object))).toEqual(inFrame({ auth: sum }))
    expect(schemaOf(bare(object))).toEqual(sum)
    expect(schemaOf([...data(object), ...noData()])).toEqual({ anyOf: [inFrame({ data: sum }), frame] })
  })

  test('show a file by its type beside an object', () => {
    const { responses } = shown([...bare(Type.Object({})), ...bytes('text/plain')])
    const content = { 'application/json': { schema: { type: 'object', properties: {} } }, 'text/plain': {} }
    expect(responses).toMatchObject({ 200: { content } })
  })

  test('show the known members of data beside it where the envelope repeats them', () => {
    expect(schemaOf(data(Type.Object({ sum: Type.String() })), true)).toEqual({
      allOf: [frame, { type: 'object', properties: { data: sum } }, sum],
    })
    expect(schemaOf(data(mapOf(Type.String())), true)).toEqual(
      inFrame({ data: { type: 'object', additionalProperties: word } }),
    )
  })

  test('list a schema with a title once, by that name', () => {
    const one = titled('One', { sum: Type.String() })
    const { responses, named } = shown(data(Type.Object({ a: one, b: Type.Array(one), c: orNull(one) })))
    const reference = { $ref: '#/components/schemas/One' }
    expect(named).toEqual({ One: { ...sum, title: 'One' } })
    expect(JSON.stringify(responses).split(JSON.stringify(reference))).toHaveLength(4)
  })

  test('are in the dialect of OpenAPI 3.0, which has no null type', () => {
    const one = titled('One', {})
    const members = {
      none: Type.Null(),
      text: orNull(Type.String()),
      named: orNull(one),
      either: orNull(Type.Union([Type.String(), Type.Integer()])),
      free: mapOf(Type.Unknown()),
    }
    expect(schemaOf(bare(Type.Object(members)))).toMatchObject({
      properties: {
        none: { nullable: true, enum: [null] },
        text: { type: 'string', nullable: true },
        named: { allOf: [{ $ref: '#/components/schemas/One' }], nullable: true },
        either: { anyOf: [word, { type: 'integer' }], nullable: true },
        free: { type: 'object', additionalProperties: {} },
      },
    })
  })
})
