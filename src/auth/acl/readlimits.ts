import { readSeconds } from '../../duration.ts'
import { fail, quoted } from './faults.ts'
import { type Block, type Entry, isBlock, type Value } from './hcl.ts'
import { effective, type Limits, unlimited, type Values } from './limits.ts'

/** The keys of a `path` block that are read here. */
export const limitKeys: ReadonlySet<string> = new Set([
  'allowed_parameters',
  'denied_parameters',
  'required_parameters',
  'min_wrapping_ttl',
  'max_wrapping_ttl',
])

/**
 * @param where the block, for refusals
 * @returns undefined when the block limits nothing
 * @throws ApiError 400 naming the path, the key and the line
 */
export function readLimits(where: string, { entries }: Block): Limits | undefined {
  const entry = (name: string) => entries.find(({ keys }) => keys[0] === name)
  if (!entries.some(({ keys }) => limitKeys.has(keys[0]))) return undefined
  const limits: Limits = {
    allowed: readValues(where, entry('allowed_parameters')),
    denied: readValues(where, entry('denied_parameters')),
    required: readNames(where, entry('required_parameters')),
    minWrappingSeconds: readBound(where, entry('min_wrapping_ttl')),
    maxWrappingSeconds: readBound(where, entry('max_wrapping_ttl')),
  }
  const { minWrappingSeconds: min, maxWrappingSeconds: max } = limits
  if (min > 0 && max > 0 && max < min) fail(`${where}: max_wrapping_ttl cannot be less than min_wrapping_ttl`)
  return effective(limits)
}

/** `{ "name" = ["value", …] }`. A single value is a list of one, as in HCL. */
function readValues(where: string, found: Entry | undefined): Values {
  if (found === undefined) return unlimited.allowed
  const key = onlyKey(where, found)
  const values = new Map<string, readonly unknown[]>()
  const blocks = listOf(found.value)
  for (const block of blocks) {
    if (!isBlock(block)) return fail(`${where}: ${key} must name parameters and their values on line ${found.line}`)
    for (const entry of block.entries) {
      const name = onlyKey(`${where}: ${key}`, entry).toLowerCase()
      if (values.has(name))
        fail(`${where}: ${key}: parameter ${quoted(name)} occurs twice, again on line ${entry.line}`)
      values.set(name, listOf(entry.value).map(plain))
    }
  }
  return values
}

function readNames(where: string, found: Entry | undefined): readonly string[] {
  if (found === undefined) return unlimited.required
  const key = onlyKey(where, found)
  const names = listOf(found.value).map((name) =>
    typeof name === 'string'
      ? name.toLowerCase()
      : fail(`${where}: ${key} must be a list of strings on line ${found.line}`),
  )
  return [...new Set(names)]
}

function readBound(where: string, found: Entry | undefined): number {
  if (found === undefined) return 0
  const key = onlyKey(where, found)
  const refuse = (reason: string) => fail(`${where}: error parsing ${key} on line ${found.line}: ${reason}`)
  const { value } = found
  if (typeof value !== 'number' && typeof value !== 'string') return refuse('expected seconds or a duration')
  return readSeconds(value, refuse)
}

/** An entry here is `key = value` or `key {…}`: more words before the value would mean something else. */
function onlyKey(where: string, { keys, line }: Entry): string {
  const [key, more] = keys
  return more === undefined ? key : fail(`${where}: ${key}: unexpected ${quoted(more)} on line ${line}`)
}

const listOf = (value: Value): readonly Value[] =>
  Array.isArray(value) ? (value as readonly Value[]) : [value as Value]

/** The value as JSON. */
function plain(value: Value): unknown {
  if (Array.isArray(value)) return (value as readonly Value[]).map(plain)
  if (!isBlock(value)) return value
  const members = value.entries.map(({ keys: [key, ...deeper], value: member }): [string, unknown] => [
    key,
    deeper.reduceRight((inner, name) => Object.fromEntries([[name, inner]]), plain(member)),
  ])
  return Object.fromEntries(members)
}
