/** The parts of a JSON Schema node needed for reading, overriding and explaining. */
export interface Node {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxProperties?: number
  readonly description?: string
  readonly secret?: boolean
}

export type Tree = Readonly<Record<string, unknown>>

/** The schema of one field or list item of `node`, if there is one. */
export const child = (node: Node | undefined, key: string): Node | undefined =>
  node?.items ?? (node?.properties && Object.hasOwn(node.properties, key) ? node.properties[key] : undefined)
