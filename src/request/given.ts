import type { Given, Parameter } from '../auth/acl/parameters.ts'
import { convert, type Refuse } from './convert.ts'
import type { Match } from './dispatch.ts'
import type { Input } from './input.ts'
import type { Field } from './parse.ts'

/**
 * What a request gives, for the rules of policies on parameters: under whatever name and wherever it stands, since a rule
 * on a hash must hold in the body, in the path, under an older name and in a batch item.
 * @param match undefined where there is no such route: every name is then a stranger's
 */
export function given(input: Input, match: Match | undefined): Given {
  const known = match?.endpoint.fields.known
  const own = (name: string): unknown => (Object.hasOwn(input, name) ? input[name] : undefined)
  const spellings = (name: string): readonly string[] => known?.get(name)?.spellings ?? [name]
  return {
    gives: (name) => spellings(name).some((spelling) => isThere(own(spelling))),
    *parameters() {
      yield* named(input, 'request', known)
      if (match === undefined) return
      yield* captured(match)
      const { items } = match.endpoint.route
      if (items === undefined) return
      for (const spelling of spellings(items)) {
        const batch = own(spelling)
        if (!Array.isArray(batch)) continue
        for (const [index, item] of batch.entries()) {
          if (isObject(item)) yield* named(item, { items, index }, known)
        }
      }
    },
  }
}

/**
 * The paths where the same request lies when its path says less about fields: those without the captures at its end that
 * stand for fields.
 */
export function shorterPaths(path: string, { endpoint }: Match): string[] {
  const { route, fields } = endpoint
  const segments = route.path.split('/')
  const isField = (segment = '') =>
    segment.startsWith(':') && (fields.known.has(segment.slice(1)) || route.stands?.[segment.slice(1)] !== undefined)
  const paths: string[] = []
  for (let rest = path; isField(segments.pop()); paths.push(rest)) rest = rest.slice(0, rest.lastIndexOf('/'))
  return paths
}

type Known = ReadonlyMap<string, Field> | undefined

const isThere = (value: unknown): boolean => value !== undefined && value !== null

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function* named(
  source: Readonly<Record<string, unknown>>,
  place: Parameter['place'],
  known: Known,
): Generator<Parameter> {
  for (const name of Object.keys(source)) {
    const value = source[name]
    if (isThere(value)) yield parameter(name.toLowerCase(), value, place, known)
  }
}

function* captured({ endpoint: { route, fields }, params }: Match): Generator<Parameter> {
  for (const [name, value] of Object.entries(params)) {
    const stands = route.stands?.[name] ?? name
    yield parameter(typeof stands === 'string' ? stands : stands(value), value, 'path', fields.known)
  }
}

function parameter(name: string, value: unknown, place: Parameter['place'], known: Known): Parameter {
  const field = known?.get(name)
  if (field === undefined) return { names: [name], value, read: asItIs, place, field: place !== 'path' }
  return { names: field.spellings, value, read: (given) => taken(field, given), place, field: true }
}

const asItIs = (value: unknown): unknown => value

/** Thrown and caught at once, for every value of a batch perhaps: it has no stack to collect. */
const unreadable = Object.freeze({ reason: 'no such value' })
const refuse: Refuse = () => {
  throw unreadable
}

function taken({ lenient }: Field, value: unknown): unknown {
  try {
    return convert(lenient, value, refuse)
  } catch (error) {
    if (error === unreadable) return undefined
    throw error
  }
}
