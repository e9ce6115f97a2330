import type { Parameter, RequestParameters } from '../auth/acl/parameters.ts'
import { isObject } from '../field/object.ts'
import { convert, type Refuse } from './convert.ts'
import type { Input } from './input.ts'
import type { Match } from './match.ts'
import type { Field } from './parse.ts'

/**
 * The parameters of a request, for the rules of policies: under any name and in any place, since a rule on a hash must
 * hold in the body, in the path, under an older name and in a batch item. Without a route every name is unknown.
 */
export function parametersOf(input: Input, match: Match): RequestParameters {
  const { known } = match.endpoint.fields
  const own = (name: string): unknown => (Object.hasOwn(input, name) ? input[name] : undefined)
  const spellings = (name: string): readonly string[] => known.get(name)?.spellings ?? [name]
  return {
    has: (name) => spellings(name).some((spelling) => effective(own(spelling), known.get(spelling)) !== undefined),
    *all() {
      yield* parametersIn(input, 'request', known)
      yield* parametersInPath(match)
      const { items } = match.endpoint.route
      if (items === undefined) return
      for (const spelling of spellings(items)) {
        const batch = own(spelling)
        if (!Array.isArray(batch)) continue
        for (const [index, item] of batch.entries()) {
          if (isObject(item)) yield* parametersIn(item, { items, index }, known)
        }
      }
    },
  }
}

/**
 * The paths of the same request with fewer fields in its path: without the captures at its end that stand for fields.
 * The capture of a rest (`restore/:name*`) goes as a whole, however many segments it took.
 */
export function shorterPaths(path: string, { endpoint, params }: Match): string[] {
  const { route, fields } = endpoint
  const segments = route.path.split('/')
  const paths: string[] = []
  for (let rest = path; ; paths.push(rest)) {
    const [, name, isRest] = /^:([^*]+)(\*?)$/.exec(segments.pop() ?? '') ?? []
    if (name === undefined || (!fields.known.has(name) && route.stands?.[name] === undefined)) return paths
    const captured = isRest ? (params[name] ?? '').split('/').length : 1
    rest = rest.split('/').slice(0, -captured).join('/')
  }
}

type Known = ReadonlyMap<string, Field>

/** The effective value of a parameter: an explicit null stands for the initial value of a field that has one. */
const effective = (value: unknown, field: Field | undefined): unknown => (value === null ? field?.initial : value)

function* parametersIn(
  values: Readonly<Record<string, unknown>>,
  source: Parameter['source'],
  known: Known,
): Generator<Parameter> {
  for (const name of Object.keys(values)) {
    const value = effective(values[name], known.get(name.toLowerCase()))
    if (value !== undefined) yield parameter(name.toLowerCase(), value, source, known)
  }
}

function* parametersInPath({ endpoint: { route, fields }, params }: Match): Generator<Parameter> {
  for (const [name, value] of Object.entries(params)) {
    const stands = route.stands?.[name] ?? name
    yield parameter(typeof stands === 'string' ? stands : stands(value), value, 'path', fields.known)
  }
}

function parameter(name: string, value: unknown, source: Parameter['source'], known: Known): Parameter {
  const field = known.get(name)
  if (field === undefined) return { names: [name], value, read: unchanged, source, field: source !== 'path' }
  return { names: field.spellings, value, read: (sent) => readAs(field, sent), source, field: true }
}

const unchanged = (value: unknown): unknown => value

/** Thrown and caught at once, perhaps for every value of a batch: it has no stack to collect. */
const unreadable = Object.freeze({ reason: 'no such value' })
const refuse: Refuse = () => {
  throw unreadable
}

function readAs({ lenient }: Field, value: unknown): unknown {
  try {
    return convert(lenient, value, refuse)
  } catch (error) {
    if (error === unreadable) return undefined
    throw error
  }
}
