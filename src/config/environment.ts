import { isObject } from '../field/object.ts'
import type { Node, Tree } from './node.ts'
import { parseText } from './read.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Variables of the commands, the launcher and the tests, which are not fields. */
const reserved = /^STRONGROOM_(CONFIG|DATA|ROOT_TOKEN|ADDRESS|TEST_.*)$/

/** The environment variable of each field: `database.poolSize` is STRONGROOM_DATABASE_POOL_SIZE. */
export function variables(node: Node, path: readonly string[] = []): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const [key, part] of Object.entries(node.properties ?? {})) {
    const here = [...path, key]
    if (!part.properties) found.set(`STRONGROOM_${here.map(upperCase).join('_')}`, here)
    for (const [name, deeper] of variables(part, here)) found.set(name, deeper)
  }
  return found
}

const upperCase = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()

/**
 * Overrides the file by the environment. Lists and maps are written as YAML or JSON; STRONGROOM_LISTEN is the address
 * of the first listener. A variable with our prefix that sets nothing only causes a warning: Kubernetes makes such
 * names for a service called strongroom.
 */
export function override(schema: Node, file: Tree, environment: Environment): { tree: Tree; warnings: string[] } {
  const known = variables(schema)
  const idle: string[] = []
  let tree = file
  for (const [name, text] of Object.entries(environment)) {
    if (text === undefined || !name.startsWith('STRONGROOM_') || reserved.test(name)) continue
    const path = known.get(name)
    if (path) tree = set(tree, path, parsed(schema, path, text))
    else if (name === 'STRONGROOM_LISTEN') tree = listenAt(tree, text)
    else idle.push(name)
  }
  const pinVariable = isObject(tree.pkcs11) && isObject(tree.pkcs11.pin) ? tree.pkcs11.pin.environment : undefined
  const warnings = idle
    .filter((name) => name !== pinVariable)
    .map((name) => `environment: ${name} is no known setting and is ignored`)
  return { tree, warnings }
}

function parsed(schema: Node, path: readonly string[], text: string): unknown {
  const node = path.reduce<Node | undefined>((at, key) => at?.properties?.[key], schema)
  if (!node?.items && !node?.patternProperties) return text
  try {
    return parseText(text)
  } catch {
    return text // neither a list nor a map: the check refuses it
  }
}

function listenAt(tree: Tree, address: string): Tree {
  const [first, ...others] = Array.isArray(tree.listeners) ? tree.listeners : []
  return { ...tree, listeners: [{ ...(isObject(first) ? first : {}), address }, ...others] }
}

function set(tree: Tree, [key, ...rest]: readonly string[], value: unknown): Tree {
  if (key === undefined) return tree
  const below = tree[key]
  return { ...tree, [key]: rest.length === 0 ? value : set(isObject(below) ? below : {}, rest, value) }
}
