import type { Capability } from '../../route.ts'
import type { Limits } from './limits.ts'
import { allows, denies, type Read } from './match.ts'

/** One value of a parameter of a request, from any source. */
export interface Parameter {
  /** All its names, in lower case, the field's own first. */
  readonly names: readonly string[]
  readonly value: unknown
  readonly read: Read
  /** The client chooses the names only in the request itself. */
  readonly source: 'request' | 'path' | { readonly items: string; readonly index: number }
  /** Whether an operation takes it as a parameter: false for the name of a key in the path. */
  readonly field: boolean
}

/** The parameters of a request, as policies see them. A parameter that is null is absent. */
export interface RequestParameters {
  /** Whether the request itself has a parameter, under this name (lower case) or an alias of it. */
  has(name: string): boolean
  /** Every value: the request's own, those in its path, and those of every batch item. */
  all(): Iterable<Parameter>
}

/** Operations whose parameters are checked, as in Vault. */
const checked: ReadonlySet<Capability> = new Set(['read', 'create', 'update', 'patch'])

/**
 * Finds the limit that a request breaks.
 * @returns the end of a sentence that begins with the rule, without any value of the request; undefined when no limit
 *   is broken
 */
export function breach(limits: Limits, capability: Capability, parameters: RequestParameters): string | undefined {
  // X-Vault-Wrap-TTL is refused before policies are consulted: no request asks for a wrapped answer.
  if (limits.minWrappingSeconds > 0 || limits.maxWrappingSeconds > 0) return 'allows only wrapped answers'
  if (!checked.has(capability)) return undefined
  const missing = limits.required.find((name) => !parameters.has(name))
  if (missing !== undefined) return `requires the parameter ${shown(missing)}`
  if (limits.denied.size === 0 && limits.allowed.size === 0) return undefined
  for (const parameter of parameters.all()) {
    const broken = deniedBy(limits, parameter) ?? notAllowedBy(limits, parameter)
    if (broken !== undefined) return broken
  }
  return undefined
}

function deniedBy({ denied }: Limits, { names, value, read, source, field }: Parameter): string | undefined {
  if (denied.has('*') && field) return `denies every parameter, and ${nameOf(names)}${within(source)} is one`
  for (const name of names) {
    const values = denied.get(name)
    if (values === undefined || !denies(values, value, read)) continue
    return `denies ${values.length === 0 ? '' : 'this value of '}the parameter ${nameOf(names)}${within(source)}`
  }
  return undefined
}

function notAllowedBy({ allowed }: Limits, { names, value, read, source }: Parameter): string | undefined {
  if (allowed.size === 0) return undefined
  const named = names.filter((name) => allowed.has(name))
  if (named.length === 0 && source === 'request' && !allowed.has('*')) {
    return `does not allow the parameter ${nameOf(names)}, only ${listed([...allowed.keys()])}`
  }
  for (const name of named) {
    const values = allowed.get(name) ?? []
    if (!allows(values, value, read)) {
      return `does not allow this value of the parameter ${nameOf(names)}${within(source)}, only ${listed(values)}`
    }
  }
  return undefined
}

const nameOf = ([own = '']: readonly string[]): string => shown(own)

function within(source: Parameter['source']): string {
  if (source === 'request') return ''
  return source === 'path' ? ' in the path' : ` in item ${source.index} of ${source.items}`
}

/** Names may come from the caller: a megabyte is not sent back whole. */
function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const listed = (values: readonly unknown[]): string =>
  values.slice(0, 20).map(shown).join(', ') + (values.length > 20 ? ' …' : '')
