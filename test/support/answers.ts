import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Validator } from 'typebox/schema'
import type { Form } from '../../src/answers.ts'
import type { Contract, Endpoint } from './contract.ts'
import { endpointsAt, noteMount } from './endpoints.ts'

/** A successful answer, and its request. */
export interface Exchange {
  /** As sent: `LIST` may also be GET with `list=true`. */
  readonly verb: string
  /** Below /v1/, with its query. */
  readonly path: string
  readonly sent: unknown
  readonly status: number
  readonly contentType: string
  readonly text: string
  readonly body: unknown
}

type Envelope = Form & { readonly kind: 'envelope' }

/** Longer answers are checked once for each route. */
const longest = 1_048_576

let contract: Contract | undefined
const validators = new Map<Form | 'help', Validator>()
const longChecked = new Set<Endpoint>()

/** The declarations, as global.ts wrote them for the run. */
export const readContract = (): Contract =>
  JSON.parse(readFileSync(join(process.env.STRONGROOM_TEST_DIRECTORY ?? '', 'contract.json'), 'utf8'))

/**
 * Checks an answer against the declaration of its route.
 * @throws {Error} naming the differences
 */
export async function checkAnswer(exchange: Exchange): Promise<void> {
  const { pathname, searchParams: query } = new URL(exchange.path, 'http://server/')
  const path = pathname.slice(1)
  const method = methodOf(exchange.verb, query)
  const differences = query.get('help')
    ? await differencesOfHelp(exchange)
    : await differencesAt(method, path, exchange)
  if (differences.length === 0) return
  const { status, text } = exchange
  throw new Error(`undeclared answer of ${method} ${path}: ${status} ${differences.join('; ')}\n${text.slice(0, 2000)}`)
}

/** The differences from every route that may have answered; empty if the answer agrees with one. */
async function differencesAt(method: string, path: string, exchange: Exchange): Promise<readonly string[]> {
  contract ??= readContract()
  const found = endpointsAt(contract, method, path)
  noteMount(method, path, exchange.sent)
  if (found.length === 0) return ['no route answers it']
  const differences: string[] = []
  for (const endpoint of found) {
    const long = exchange.text.length > longest
    if (long && longChecked.has(endpoint)) return []
    if (long) longChecked.add(endpoint)
    const wrong = await differencesFrom(endpoint, method, exchange)
    if (wrong.length === 0) return []
    differences.push(...wrong)
  }
  return differences
}

function methodOf(verb: string, query: URLSearchParams): string {
  if (verb === 'PUT') return 'POST'
  return verb === 'GET' && query.get('list') === 'true' ? 'LIST' : verb
}

async function differencesFrom(endpoint: Endpoint, method: string, exchange: Exchange): Promise<readonly string[]> {
  const { status, contentType } = exchange
  // An answer without content may have the type of the file that it would be.
  const [type] = contentType.split(';')
  const forms = endpoint.answers.filter(
    (form) => (form.status === '2XX' || form.status === status) && (form.kind === 'empty' || typeOf(form) === type),
  )
  if (forms.length === 0) return [`${contentType || 'no content'} is not declared`]
  const differences: string[] = []
  for (const form of forms) {
    const wrong = method === 'HEAD' ? [] : await differencesOf(endpoint, form, exchange)
    if (wrong.length === 0) return []
    differences.push(...wrong)
  }
  return differences
}

const typeOf = (form: Form): string => (form.kind === 'bytes' ? form.type : 'application/json')

async function differencesOf(endpoint: Endpoint, form: Form, { text, body }: Exchange): Promise<readonly string[]> {
  if (form.kind === 'bytes') return []
  if (form.kind === 'empty') return text === '' ? [] : ['a body']
  const validator = await validatorOf(form, () => (form.kind === 'bare' ? form.schema : envelopeOf(form)))
  if (form.kind === 'bare') return errorsOf(validator, body)
  const { inner, wrong } = endpoint.inject ? withoutRepetition(body) : { inner: body, wrong: [] }
  return [...wrong, ...errorsOf(validator, inner)]
}

const differencesOfHelp = async ({ body }: Exchange): Promise<readonly string[]> =>
  errorsOf(await validatorOf('help', () => helpSchema), body)

async function validatorOf(form: Form | 'help', schema: () => object): Promise<Validator> {
  const known = validators.get(form)
  if (known !== undefined) return known
  // Loaded by the first answer: most test files have none.
  const { Compile } = await import('typebox/schema')
  const validator = Compile(closed(schema()) as Parameters<typeof Compile>[0])
  validators.set(form, validator)
  return validator
}

function errorsOf(validator: Validator, value: unknown): readonly string[] {
  if (validator.Check(value)) return []
  const [, errors] = validator.Errors(value)
  return errors.map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
}

/** The same schema, in which an object with declared members has no others. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return inner.type === 'object' && 'properties' in inner ? { ...inner, additionalProperties: false } : inner
}

const nothing = { type: 'null' }
const anyText = { type: 'string' }
const helpSchema = {
  type: 'object',
  required: ['help', 'see_also', 'openapi'],
  properties: { help: anyText, see_also: { type: 'array', maxItems: 0 }, openapi: {} },
}

/** The members of the envelope besides `data` and `auth`. */
const frame = {
  request_id: { type: 'string', pattern: '^[0-9a-f-]{36}$' },
  lease_id: anyText,
  renewable: { type: 'boolean' },
  lease_duration: { type: 'integer' },
  wrap_info: nothing,
  warnings: { anyOf: [nothing, { type: 'array', items: anyText, minItems: 1 }] },
}
const envelopeNames: readonly string[] = [...Object.keys(frame), 'data', 'auth']

const envelopeOf = ({ data = nothing, auth = nothing }: Envelope): object => ({
  type: 'object',
  required: envelopeNames,
  properties: { ...frame, data, auth },
})

/** The envelope without the members of `data` that it repeats; each must be repeated unchanged. */
function withoutRepetition(body: unknown): { inner: unknown; wrong: readonly string[] } {
  const { data, ...rest } = body as Readonly<Record<string, unknown>> & { data: Readonly<Record<string, unknown>> }
  const repeated = Object.entries(data ?? {}).filter(([name]) => !envelopeNames.includes(name))
  const wrong = repeated.filter(([name, value]) => !isDeepStrictEqual(rest[name], value))
  const names = new Set(repeated.map(([name]) => name))
  const inner = Object.fromEntries(Object.entries({ ...rest, data }).filter(([name]) => !names.has(name)))
  return { inner, wrong: wrong.map(([name]) => `${name} is not repeated as it is`) }
}
