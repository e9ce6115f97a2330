import type { Kind, Stored } from './table.ts'

/** One value under its column name. */
export type Cell = readonly [name: string, kind: Kind, value: Stored]

const tags: Record<Kind, number> = { text: 0x74, integer: 0x69, boolean: 0x62, bytes: 0x78, json: 0x6a }
const domain = Buffer.from('strongroom sealed row\0')

/**
 * The bytes a row's MAC is made over: a domain string, the format, the table's name, then every cell that is not NULL
 * as name, tag and value, each with its length before it, in the order of the names. Two different rows never give the
 * same bytes: NULL is the absence of its name, which no value can imitate. So a nullable column can be added without
 * sealing a row again.
 */
export function canonical(format: number, table: string, cells: readonly Cell[]): Buffer {
  const present = cells.filter(([, , value]) => value !== null)
  present.sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = [domain, number(format), ...prefixed(Buffer.from(table))]
  for (const [name, kind, value] of present) {
    parts.push(...prefixed(Buffer.from(name)), Buffer.of(tags[kind]), ...prefixed(bytesOf(value)))
  }
  return Buffer.concat(parts)
}

const bytesOf = (value: Stored): Buffer => (Buffer.isBuffer(value) ? value : Buffer.from(String(value), 'utf8'))

const prefixed = (bytes: Buffer): [Buffer, Buffer] => [number(bytes.length), bytes]

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
