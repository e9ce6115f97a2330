import type { Lenient } from '../../field.ts'
import type { Data, Method, Route, Routes } from '../../route.ts'
import { type NamedSchemas, responsesOf } from './responses.ts'

/** The routes of one engine in the document. */
export interface ApiSection {
  /** Without slashes at its ends: `sys`, or the default path of an engine. */
  readonly prefix: string
  readonly tag: string
  readonly routes: Routes<unknown>
}

/** The schema written by the makers of field.ts. */
interface Field {
  readonly lenient: Lenient
  readonly description: string
  readonly aliases?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly unknown[]
  readonly default?: unknown
}

/** The forms of a value. Durations and comma lists have two each, and a strict client must know both. */
const types: Readonly<Record<Lenient, Data>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  duration: { oneOf: [{ type: 'integer' }, { type: 'string' }] },
  time: { oneOf: [{ type: 'integer' }, { type: 'string' }] },
  list: { type: 'array', items: { type: 'string' } },
  commaList: { oneOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }] },
  commaText: { type: 'string' },
  map: { type: 'object', additionalProperties: { type: 'string' } },
  raw: {},
}

/** The schema of a field that null resets. */
const orNull = (schema: Data): Data => ({ ...schema, nullable: true })

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

/** `keys/:name` as `keys/{name}`; a list has a trailing slash, since the same path may be read too. */
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
 * The OpenAPI 3.0 document of route tables: exactly the paths that the server answers. The reference's document is of
 * version 3.0 too, which client generators read.
 * @see https://spec.openapis.org/oas/v3.0.3
 */
export function describeApi(sections: readonly ApiSection[], version: string): Data {
  const paths: Record<string, Record<string, unknown>> = {}
  const named: NamedSchemas = new Map()
  for (const section of sections) {
    for (const route of section.routes) {
      const path = `/${section.prefix}/${templateOf(route)}`
      paths[path] ??= parametersOf(path, route)
      paths[path][verbs[route.method]] = operation(section, route, named)
      // Unless HEAD has a declaration of its own, before or after this one.
      if (route.method === 'GET' && route.access === 'public') {
        paths[path].head ??= operation(section, { ...route, method: 'HEAD' }, named)
      }
    }
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Strongroom',
      description: 'An encryption service and certificate authority whose keys live in an HSM, with the API of Vault.',
      version,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/v1' }],
    security: [{ token: [] }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: { ...components, schemas: { ...components.schemas, ...Object.fromEntries(named) } },
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

function operation({ prefix, tag }: ApiSection, route: Route<unknown>, named: NamedSchemas): Data {
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
    responses: responsesOf(route, named),
  }
}

/** Parameters of a write are in its body, those of the others in the query. */
function inputOf(route: Route<unknown>): Data {
  const fields = fieldsOf(route)
  const { bytes } = route
  if (bytes !== undefined) {
    const description = `At most ${bytes.maxBytes} bytes, with any Content-Type.`
    return { requestBody: { description, required: true, content: { [bytes.type]: {} } } }
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

const strings = { type: 'array', items: { type: 'string' } }
const answer = {
  type: 'object',
  properties: {
    request_id: { type: 'string' },
    lease_id: { type: 'string' },
    renewable: { type: 'boolean' },
    lease_duration: { type: 'integer' },
    data: { type: 'object', nullable: true },
    wrap_info: { type: 'object', nullable: true },
    warnings: { ...strings, nullable: true },
    auth: { type: 'object', nullable: true },
  },
}

const components = {
  securitySchemes: { token: { type: 'apiKey', in: 'header', name: 'X-Vault-Token' } },
  schemas: { Answer: answer, Errors: { type: 'object', required: ['errors'], properties: { errors: strings } } },
  responses: {
    Refused: {
      description:
        '4xx: the caller’s mistake, with an explanation; 5xx: a server fault, and the request may be repeated.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Errors' } } },
    },
  },
}
