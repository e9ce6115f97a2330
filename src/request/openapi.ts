import type { Lenient } from '../field.ts'
import type { Data, Method, Route, Routes } from '../route.ts'

/** The routes of one engine, as the document shows them. */
export interface ApiSection {
  /** Without slashes at its ends: `sys`, or the path that an engine has by default. */
  readonly prefix: string
  readonly tag: string
  readonly routes: Routes<unknown>
}

/** What the makers of field.ts write into a schema. */
interface Field {
  readonly lenient: Lenient
  readonly description: string
  readonly aliases?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly unknown[]
  readonly default?: unknown
}

/** How a value may be written. Durations and comma lists have a second form each, and a strict client must know it. */
const types: Readonly<Record<Lenient, Data>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  duration: { type: ['integer', 'string'] },
  time: { type: ['integer', 'string'] },
  list: { type: 'array', items: { type: 'string' } },
  commaList: { type: ['array', 'string'], items: { type: 'string' } },
  commaText: { type: 'string' },
  map: { type: 'object', additionalProperties: { type: 'string' } },
  raw: {},
}

/** The schema of a field that null sets back. */
const orNull = (schema: Data): Data => ('type' in schema ? { ...schema, type: [schema.type, 'null'].flat() } : schema)

/** The fields of a route by name; a body is made of the fields of field.ts. */
export const fieldsOf = (route: Route<unknown>): readonly (readonly [string, Field])[] =>
  Object.entries(route.body.properties as unknown as Record<string, Field>)

function schemaOf({ lenient, description, aliases, minimum, maximum, enum: values, default: initial }: Field): Data {
  return {
    ...(initial === undefined ? types[lenient] : { ...orNull(types[lenient]), default: initial }),
    description,
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...(values === undefined ? {} : { enum: values }),
    ...(aliases === undefined ? {} : { 'x-aliases': aliases }),
  }
}

const verbs: Readonly<Record<Method, string>> = {
  GET: 'get',
  LIST: 'get',
  POST: 'post',
  DELETE: 'delete',
  PATCH: 'patch',
  HEAD: 'head',
}

/** `keys/:name` as `keys/{name}`; a list is the path with a slash behind it, where the same path may be read too. */
function templateOf(route: Route<unknown>): string {
  const path = route.path.replace(/:(\w+)\*{0,2}/g, '{$1}')
  return route.method === 'LIST' ? `${path}/` : path
}

const inPath = (name: string, more: Data = {}): Data => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', ...more },
})

const rawInPath = (name: string): Data => ({
  ...inPath(name),
  description: 'The rest of the path, in which slashes may stand as they are.',
})

/**
 * The OpenAPI 3.1 document of route tables: every path the server answers, and no other.
 * @see https://spec.openapis.org/oas/v3.1.1
 */
export function describeApi(sections: readonly ApiSection[], version: string): Data {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const section of sections) {
    for (const route of section.routes) {
      const path = `/${section.prefix}/${templateOf(route)}`
      paths[path] ??= parametersOf(path, route)
      paths[path][verbs[route.method]] = operation(section, route)
      // Unless it has a declaration of its own, which stands before or comes after this one.
      if (route.method === 'GET' && route.access === 'public') {
        paths[path].head ??= operation(section, { ...route, method: 'HEAD' })
      }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Strongroom',
      description: 'An encryption service and certificate authority whose keys live in an HSM, with the API of Vault.',
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/v1' }],
    security: [{ token: [] }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components,
  }
}

function parametersOf(path: string, route: Route<unknown>): Record<string, unknown> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  if (names.length === 0) return {}
  const parameter = (name: string) => {
    if (route.path.endsWith(`:${name}**`)) return rawInPath(name)
    const pattern = route.captures?.[name]?.source
    return inPath(name, pattern === undefined ? {} : { pattern })
  }
  return { parameters: names.map(parameter) }
}

function operation({ prefix, tag }: ApiSection, route: Route<unknown>): Data {
  const { method, access, about } = route
  const words = `${method.toLowerCase()}/${prefix}/${route.path}`.match(/\w+/g) ?? []
  return {
    operationId: words.join('-'),
    summary: about,
    tags: [tag],
    ...(access === 'public' ? { security: [], 'x-vault-unauthenticated': true } : {}),
    ...(access === 'sudo' ? { 'x-vault-sudo': true } : {}),
    ...(route.exists === undefined ? {} : { 'x-vault-createSupported': true }),
    ...inputOf(route),
    responses: route.rawTypes === undefined ? responses : { ...responses, '2XX': bytesDone(route.rawTypes) },
  }
}

/** Parameters of a write lie in its body, those of the others in the query. */
function inputOf(route: Route<unknown>): Data {
  const fields = fieldsOf(route)
  const { bytes } = route
  if (bytes !== undefined) {
    const description = `At most ${bytes.maxBytes} bytes, whatever their Content-Type.`
    return { requestBody: { description, required: true, content: contentOf([bytes.type]) } }
  }
  if (route.method === 'POST' || route.method === 'PATCH') {
    if (fields.length === 0) return {}
    const properties = Object.fromEntries(fields.map(([name, field]) => [name, schemaOf(field)]))
    return { requestBody: { content: { 'application/json': { schema: { type: 'object', properties } } } } }
  }
  const parameters: Data[] = fields.map(([name, field]) => ({ name, in: 'query', schema: schemaOf(field) }))
  if (route.method === 'LIST') {
    parameters.unshift({ name: 'list', in: 'query', required: true, schema: { type: 'string', enum: ['true'] } })
  }
  return parameters.length === 0 ? {} : { parameters }
}

/** Bytes have no schema. */
const contentOf = (types: readonly string[]): Data => Object.fromEntries(types.map((type) => [type, {}]))

const bytesDone = (types: readonly string[]): Data => ({
  description: 'Done; sent as it is, without an envelope. 204 has no body.',
  content: contentOf(types),
})

const responses = {
  '2XX': { $ref: '#/components/responses/Done' },
  default: { $ref: '#/components/responses/Refused' },
}

const strings = { type: 'array', items: { type: 'string' } }
const answer = {
  type: 'object',
  properties: {
    request_id: { type: 'string' },
    lease_id: { type: 'string' },
    renewable: { type: 'boolean' },
    lease_duration: { type: 'integer' },
    data: { type: ['object', 'null'] },
    wrap_info: { type: ['object', 'null'] },
    warnings: { ...strings, type: ['array', 'null'] },
    auth: { type: ['object', 'null'] },
  },
}

const components = {
  securitySchemes: { token: { type: 'apiKey', in: 'header', name: 'X-Vault-Token' } },
  schemas: { Answer: answer, Errors: { type: 'object', required: ['errors'], properties: { errors: strings } } },
  responses: {
    Done: {
      description: 'Done. 204 has no body; some paths answer with an object or a file of their own instead.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Answer' } } },
    },
    Refused: {
      description: '4xx: the caller’s mistake, in words; 5xx: ours, and the request may be repeated.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Errors' } } },
    },
  },
}
