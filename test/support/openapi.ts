import type { Contract } from './contract.ts'

type Json = Readonly<Record<string, unknown>>

/** The parts of an OpenAPI 3.0 document that are read here. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Json>>
  readonly components: { readonly schemas: Readonly<Record<string, Json>> }
}

/** The successful answers of each operation, written alike whether they come from declarations or from a document. */
export type AnswersByOperation = Readonly<Record<string, readonly unknown[]>>

const prefixes: Readonly<Record<string, string>> = {
  system: 'sys',
  token: 'auth/token',
  transit: 'transit',
  pki: 'pki',
}

/** Those that the client of the tests checks every answer against. */
export function declaredAnswers(contract: Contract): AnswersByOperation {
  const all = Object.entries(contract).flatMap(([type, endpoints]) =>
    endpoints.map(({ method, path, inject, answers }) => {
      const list = method === 'LIST'
      const template = `/${prefixes[type]}/${path.replace(/:(\w+)\**/g, '{$1}')}${list ? '/' : ''}`
      const shown = answers.map((form) => {
        const status = String(form.status)
        if (form.kind === 'empty') return [status, 'empty']
        if (form.kind === 'bytes') return [status, form.type]
        if (form.kind === 'bare') return [status, 'bare', plain(form.schema)]
        const { data, auth } = form
        const repeated = inject === true && data !== undefined && 'properties' in data
        return [status, 'envelope', data && plain(data), auth && plain(auth), repeated]
      })
      return [`${list ? 'get' : method.toLowerCase()} ${template}`, sorted(shown)] as const
    }),
  )
  return Object.fromEntries(all)
}

/** Those of a document. */
export function documentedAnswers({ paths, components }: ApiDocument): AnswersByOperation {
  const from = (schema: unknown) => standard(schema as Json, components.schemas)
  const answerOf = (schema: Json): readonly unknown[] => {
    const [frame, inner, repeated] = (schema.allOf ?? [schema]) as readonly Json[]
    if (frame?.$ref !== '#/components/schemas/Answer') return ['bare', from(schema)]
    const { data, auth } = (inner?.properties ?? {}) as Json
    return ['envelope', data && from(data), auth && from(auth), repeated !== undefined]
  }
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]) => {
      if (verb === 'parameters') return []
      const { responses } = operation as { responses: Readonly<Record<string, { content?: Record<string, Json> }>> }
      const { default: _refusal, ...successes } = responses
      const shown = Object.entries(successes).flatMap(([status, { content }]) =>
        Object.entries(content ?? { empty: {} }).flatMap(([type, { schema }]) => {
          if (type !== 'application/json') return [[status, type]]
          const { anyOf = [schema] } = schema as { anyOf?: readonly Json[] }
          return anyOf.map((one) => [status, ...answerOf(one as Json)])
        }),
      )
      return [[`${verb} ${path}`, sorted(shown)] as const]
    }),
  )
  return Object.fromEntries(all)
}

const sorted = (answers: readonly unknown[]): readonly unknown[] =>
  answers.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

const nothing = { type: 'null' }

/** A schema of OpenAPI's dialect as JSON Schema, written as by `plain`. */
function standard({ nullable, ...schema }: Json, named: Readonly<Record<string, Json>>): unknown {
  if (typeof schema.$ref === 'string') return standard(named[schema.$ref.replace(/.*\//, '')] ?? {}, named)
  if (nullable === true && Array.isArray(schema.enum)) return nothing
  const inner = (one: unknown) => standard(one as Json, named)
  const found = Array.isArray(schema.allOf) ? inner(schema.allOf[0]) : walk(schema, inner)
  if (nullable !== true) return found
  const { anyOf = [found] } = found as { anyOf?: readonly unknown[] }
  return { anyOf: [...anyOf, nothing] }
}

/** A schema of answers.ts: null comes last of several, and a pattern that every name has is left out. */
function plain(schema: unknown): unknown {
  const { patternProperties, ...rest } = schema as Json
  const values = Object.values(patternProperties ?? {})
  const found = walk({ ...rest, ...(values.length === 0 ? {} : { additionalProperties: values[0] }) }, plain) as Json
  if (values.length > 1) throw new Error('names of several patterns')
  if (!Array.isArray(found.anyOf)) return found
  const isNull = (one: Json) => Number(one.type === 'null')
  return { anyOf: found.anyOf.toSorted((a: Json, b: Json) => isNull(a) - isNull(b)) }
}

/** The schema with each schema in it replaced. */
function walk(schema: Json, replace: (inner: unknown) => unknown): Json {
  const { anyOf, items, properties, additionalProperties, ...rest } = schema
  const members = Object.entries(properties ?? {}).map(([name, one]) => [name, replace(one)] as const)
  return {
    ...rest,
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(replace) } : {}),
    ...(items === undefined ? {} : { items: replace(items) }),
    ...(properties === undefined ? {} : { properties: Object.fromEntries(members) }),
    ...(additionalProperties === undefined ? {} : { additionalProperties: replace(additionalProperties) }),
  }
}
