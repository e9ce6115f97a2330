import { errorList } from '../../errors.ts'
import type { Capability } from '../../route.ts'
import { type Capabilities, capabilitySet, isCapability } from './capability.ts'
import { fail, quoted } from './faults.ts'
import { type Block, type Entry, isBlock, readHcl, type Value } from './hcl.ts'
import type { Limits } from './limits.ts'
import { limitKeys, readLimits } from './readlimits.ts'

/** One `path` block. `path` has no leading slash and keeps its `*` and `+`. */
export interface PathRule {
  readonly path: string
  readonly capabilities: Capabilities
  /** Rules on parameters and wrapping, if the block has any. */
  readonly limits: Limits | undefined
}

/** The contents of a policy's text. Its name is the one it is stored under; a `name` in the text is ignored. */
export interface Policy {
  readonly paths: readonly PathRule[]
}

/** Keys that would change a rule but are not enforced in this version: refused, never ignored. */
const notBuilt = new Set(['mfa_methods', 'control_group'])

/** Vault's words from the time before capabilities (`policy = "read"`). */
const oldWords: Readonly<Record<string, readonly Capability[]>> = {
  deny: ['deny'],
  read: ['read', 'list'],
  write: ['create', 'read', 'update', 'delete', 'list'],
  sudo: ['create', 'read', 'update', 'delete', 'list', 'sudo'],
}

/**
 * @param text HCL 1 or the equivalent JSON
 * @throws ApiError 400 `failed to parse policy: …`, which names the path, the key and the line
 */
export function parsePolicy(text: string): Policy {
  const { entries } = readHcl(text)
  const strange = entries.filter(({ keys }) => keys[0] !== 'name' && keys[0] !== 'path')
  if (strange.length > 0) fail(errorList(strange.map(invalidKey)))
  const paths = entries.filter(({ keys }) => keys[0] === 'path').flatMap(pathBlocks)
  return { paths: paths.map(([path, block]) => pathRule(path, block)) }
}

/** `path "a" {…}`, `path = { "a" = {…} }`, and JSON's lists of such objects, as pairs of path and block. */
function pathBlocks({ keys, value, line }: Entry): [string, Block][] {
  const [, path, more] = keys
  if (more !== undefined) fail(`path ${quoted(path ?? '')}: unexpected ${quoted(more)} on line ${line}`)
  if (path !== undefined) return blocks(value, `path ${quoted(path)}`, line).map((block) => [path, block])
  return blocks(value, '"path"', line).flatMap(({ entries }) =>
    entries.flatMap((entry) => pathBlocks({ ...entry, keys: ['path', ...entry.keys] })),
  )
}

function blocks(value: Value, what: string, line: number): Block[] {
  const list = Array.isArray(value) ? (value as readonly Value[]) : [value]
  return list.map((item) => (isBlock(item) ? item : fail(`${what}: expected an object on line ${line}`)))
}

function pathRule(given: string, block: Block): PathRule {
  const where = `path ${quoted(given)}`
  checkKeys(where, block.entries)
  const path = given.startsWith('/') ? given.slice(1) : given
  if (path.includes('{{')) fail(`${where}: templating ('{{') is not built yet`)
  if (path.includes('+*')) fail(`path ${quoted(path)}: invalid use of wildcards ('+*' is forbidden)`)
  const capabilities = capabilitySet([...oldPolicy(where, block), ...listed(where, block)])
  return { path, capabilities, limits: readLimits(where, block) }
}

function checkKeys(where: string, entries: readonly Entry[]): void {
  const known = (key: string) => key === 'capabilities' || key === 'policy' || limitKeys.has(key) || notBuilt.has(key)
  const strange = entries.filter(({ keys }) => !known(keys[0]))
  if (strange.length > 0) fail(errorList(strange.map((entry) => `${where}: ${invalidKey(entry)}`)))
  const seen = new Set<string>()
  for (const { keys, line } of entries) {
    const [key] = keys
    if (notBuilt.has(key)) fail(`${where}: key ${quoted(key)} on line ${line} is not built yet`)
    if (seen.has(key)) fail(`${where}: key ${quoted(key)} occurs twice, again on line ${line}`)
    seen.add(key)
  }
}

function oldPolicy(where: string, block: Block): readonly Capability[] {
  const entry = block.entries.find(({ keys }) => keys[0] === 'policy')
  if (entry === undefined) return []
  const { value, line } = entry
  if (typeof value !== 'string') return fail(`${where}: policy must be a string on line ${line}`)
  if (!Object.hasOwn(oldWords, value)) fail(`${where}: invalid policy ${quoted(value)}`)
  return oldWords[value] ?? []
}

function listed(where: string, block: Block): Capability[] {
  const entry = block.entries.find(({ keys }) => keys[0] === 'capabilities')
  if (entry === undefined) return []
  const { value, line } = entry
  if (!Array.isArray(value)) return fail(`${where}: capabilities must be a list of strings on line ${line}`)
  return (value as readonly Value[]).map((word) => {
    if (typeof word !== 'string') return fail(`${where}: capabilities must be a list of strings on line ${line}`)
    return isCapability(word) ? word : fail(`${where}: invalid capability ${quoted(word)}`)
  })
}

const invalidKey = ({ keys, assignedOnLine }: Entry): string =>
  `invalid key ${quoted(keys[0])} on line ${assignedOnLine}`
