import type { Capability } from '../../route.ts'
import type { Limits } from './limits.ts'
import { allows, denies, type Read } from './match.ts'

/** One value that a request gives for a parameter, wherever it stands. */
export interface Parameter {
  /** Every name it answers to, in lower case, the field's own first. */
  readonly names: readonly string[]
  readonly value: unknown
  readonly read: Read
  /** Only for the request itself does the client choose the names. */
  readonly place: 'request' | 'path' | { readonly items: string; readonly index: number }
  /** Whether an operation takes it as a parameter: false for the name of a key in the path. */
  readonly field: boolean
}

/** The parameters of a request, as policies see them. A parameter that is null is absent. */
export interface Given {
  /** Whether the request itself gives a parameter, under this name (lower case) or an alias of it. */
  gives(name: string): boolean
  /** Every value: the request's own, those in its path, and those of every batch item. */
  parameters(): Iterable<Parameter>
}

/** Parameters are looked at where they can change something; the reference leaves out the same. */
const looked: ReadonlySet<Capability> = new Set(['read', 'create', 'update', 'patch'])

/**
 * The limit that a request breaks.
 * @returns the end of a sentence that begins with the rule, without any value of the request; undefined when it keeps all
 */
export function breach(limits: Limits, capability: Capability, given: Given): string | undefined {
  // X-Vault-Wrap-TTL is refused before policies are consulted: no request asks for a wrapped answer.
  if (limits.minWrappingSeconds > 0 || limits.maxWrappingSeconds > 0) return 'allows only wrapped answers'
  if (!looked.has(capability)) return undefined
  const missing = limits.required.find((name) => !given.gives(name))
  if (missing !== undefined) return `requires the parameter ${shown(missing)}`
  if (limits.denied.size === 0 && limits.allowed.size === 0) return undefined
  for (const parameter of given.parameters()) {
    const broken = deniedBy(limits, parameter) ?? notAllowedBy(limits, parameter)
    if (broken !== undefined) return broken
  }
  return undefined
}

function deniedBy({ denied }: Limits, { names, value, read, place, field }: Parameter): string | undefined {
  if (denied.has('*') && field) return `denies every parameter, and ${nameOf(names)}${within(place)} is one`
  for (const name of names) {
    const values = denied.get(name)
    if (values === undefined || !denies(values, value, read)) continue
    return `denies ${values.length === 0 ? '' : 'this value of '}the parameter ${nameOf(names)}${within(place)}`
  }
  return undefined
}

function notAllowedBy({ allowed }: Limits, { names, value, read, place }: Parameter): string | undefined {
  if (allowed.size === 0) return undefined
  const named = names.filter((name) => allowed.has(name))
  if (named.length === 0 && place === 'request' && !allowed.has('*')) {
    return `does not allow the parameter ${nameOf(names)}, only ${listed([...allowed.keys()])}`
  }
  for (const name of named) {
    const values = allowed.get(name) ?? []
    if (!allows(values, value, read)) {
      return `does not allow this value of the parameter ${nameOf(names)}${within(place)}, only ${listed(values)}`
    }
  }
  return undefined
}

const nameOf = ([own = '']: readonly string[]): string => shown(own)

function within(place: Parameter['place']): string {
  if (place === 'request') return ''
  return place === 'path' ? ' in the path' : ` in item ${place.index} of ${place.items}`
}

/** Names may come from the caller: a megabyte is not sent back whole. */
function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const listed = (values: readonly unknown[]): string =>
  values.slice(0, 20).map(shown).join(', ') + (values.length > 20 ? ' …' : '')
