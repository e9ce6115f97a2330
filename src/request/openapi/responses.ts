import type { TSchema } from 'typebox'
import type { Answers, Form } from '../../answers.ts'
import type { Data, Route } from '../../route.ts'

/** The schemas with a name, which the document lists once. */
export type NamedSchemas = Map<string, Data>

/**
 * The responses of a route. Every route may refuse; a route without declared answers does nothing else.
 * @param named filled with the schemas that the responses refer to
 */
export function responsesOf({ answers, inject }: Route<unknown>, named: NamedSchemas): Data {
  const statuses = new Set(answers.map(({ status }) => String(status)))
  const described = [...statuses].map((status) => {
    const forms = answers.filter((form) => String(form.status) === status)
    return [status, responseOf(forms, inject === true, named)] as const
  })
  return { ...Object.fromEntries(described), default: { $ref: '#/components/responses/Refused' } }
}

function responseOf(forms: Answers, inject: boolean, named: NamedSchemas): Data {
  const content: Record<string, Data> = {}
  const inJson: Data[] = []
  for (const form of forms) {
    // Bytes have no schema.
    if (form.kind === 'bytes') content[form.type] = {}
    else if (form.kind === 'bare') inJson.push(schemaFor(form.schema, named))
    else if (form.kind === 'envelope') inJson.push(envelopeOf(form, inject, named))
  }
  const [only, ...others] = inJson
  if (only !== undefined) content['application/json'] = { schema: others.length === 0 ? only : { anyOf: inJson } }
  if (Object.keys(content).length === 0) return { description: 'Done, without a body.' }
  return { description: 'Done.', content }
}

type Envelope = Form & { readonly kind: 'envelope' }

function envelopeOf({ data, auth }: Envelope, inject: boolean, named: NamedSchemas): Data {
  const frame = { $ref: '#/components/schemas/Answer' }
  if (data === undefined && auth === undefined) return frame
  const properties = {
    ...(data === undefined ? {} : { data: schemaFor(data, named) }),
    ...(auth === undefined ? {} : { auth: schemaFor(auth, named) }),
  }
  // Every member of `data` is repeated beside it; the dialect cannot say so of members with unknown names.
  const repeated = inject && data !== undefined && 'properties' in data ? [schemaFor(data, named)] : []
  return { allOf: [frame, { type: 'object', properties }, ...repeated] }
}

/** The keywords that schemas of answers use. */
interface Schema extends TSchema {
  readonly title?: string
  readonly type?: string
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly patternProperties?: Readonly<Record<string, TSchema>>
}

/**
 * A JSON Schema of answers.ts in the dialect of OpenAPI 3.0, which has neither a null type nor patterns of names.
 * @see https://spec.openapis.org/oas/v3.0.3#schema-object
 */
function schemaFor(schema: TSchema, named: NamedSchemas): Data {
  const { title }: Schema = schema
  if (title === undefined) return inDialect(schema, named)
  if (!named.has(title)) named.set(title, inDialect(schema, named))
  return { $ref: `#/components/schemas/${title}` }
}

function inDialect(schema: TSchema, named: NamedSchemas): Data {
  const { anyOf, items, properties, patternProperties, ...plain }: Schema = schema
  if (plain.type === 'null') return { nullable: true, enum: [null] }
  if (anyOf !== undefined) return unionOf(anyOf, named)
  const values = Object.values(patternProperties ?? {}).map((value) => schemaFor(value, named))
  return {
    ...plain,
    ...(items === undefined ? {} : { items: schemaFor(items, named) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, one]) => [name, schemaFor(one, named)]),
          ),
        }),
    ...(values.length === 0 ? {} : { additionalProperties: values[0] }),
  }
}

function unionOf(schemas: readonly TSchema[], named: NamedSchemas): Data {
  const others = schemas.filter(({ type }: Schema) => type !== 'null').map((one) => schemaFor(one, named))
  const nullable = others.length < schemas.length ? { nullable: true } : {}
  const [only, ...more] = others
  if (only === undefined || more.length > 0) return { anyOf: others, ...nullable }
  // Members beside a reference are ignored.
  return '$ref' in only ? { allOf: [only], ...nullable } : { ...only, ...nullable }
}
