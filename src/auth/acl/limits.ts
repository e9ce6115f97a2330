/** Parameter names in lower case, with the values that a rule lists for them; an empty list means any value. */
export type Values = ReadonlyMap<string, readonly unknown[]>

/** The limits of a `path` block, beside its capabilities. */
export interface Limits {
  /** Empty allows everything; the name `*` stands for every other name. */
  readonly allowed: Values
  /** The name `*` stands for every name. */
  readonly denied: Values
  /** In lower case. */
  readonly required: readonly string[]
  /** Bounds on the life of a wrapped answer; 0 is unbounded. */
  readonly minWrappingSeconds: number
  readonly maxWrappingSeconds: number
}

export const unlimited: Limits = {
  allowed: new Map(),
  denied: new Map(),
  required: [],
  minWrappingSeconds: 0,
  maxWrappingSeconds: 0,
}

/** The limits, or undefined when they limit nothing, so that a rule without any costs nothing. */
export const effective = (limits: Limits): Limits | undefined =>
  limits.allowed.size > 0 ||
  limits.denied.size > 0 ||
  limits.required.length > 0 ||
  limits.minWrappingSeconds > 0 ||
  limits.maxWrappingSeconds > 0
    ? limits
    : undefined

/**
 * The union of two blocks on the same path: the values of a name are added up, except that an empty list (any value)
 * wins; required names unite; of two bounds the smaller counts. A block without limits lifts no limit.
 */
export const uniteLimits = (one: Limits, other: Limits): Limits => ({
  allowed: uniteValues(one.allowed, other.allowed),
  denied: uniteValues(one.denied, other.denied),
  required: [...new Set([...one.required, ...other.required])],
  minWrappingSeconds: smaller(one.minWrappingSeconds, other.minWrappingSeconds),
  maxWrappingSeconds: smaller(one.maxWrappingSeconds, other.maxWrappingSeconds),
})

function uniteValues(one: Values, other: Values): Values {
  const both = new Map(one)
  for (const [name, values] of other) {
    const known = both.get(name)
    both.set(
      name,
      known === undefined ? values : known.length === 0 || values.length === 0 ? [] : [...known, ...values],
    )
  }
  return both
}

const smaller = (one: number, other: number): number => (one === 0 || other === 0 ? one + other : Math.min(one, other))
