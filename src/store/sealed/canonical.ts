import type { Kind, Stored } from '../table.ts'

const tags: Record<Kind, number> = { text: 0x74, integer: 0x69, boolean: 0x62, bytes: 0x78, json: 0x6a }
const domain = Buffer.from('strongroom sealed row\0')

/** The bytes under a row's MAC. @param stored values in the order of the columns */
export type Canonical = (format: number, stored: readonly Stored[]) => Buffer

/**
 * A domain string, the format, the table's name, then every value that is not NULL as name, tag and value, each
 * preceded by its length, in the order of the names. Two different rows never give the same bytes: NULL is the absence
 * of the name, which no value can imitate. So a nullable column can be added without sealing rows again. Every row read
 * or written comes through here: the part that is the same for all rows of a table is made once.
 */
export function canonicalForm(
  table: string,
  columns: readonly { readonly name: string; readonly kind: Kind }[],
): Canonical {
  const tableName = Buffer.from(table)
  const named = Buffer.concat([number(tableName.length), tableName])
  const inOrder = columns
    .map(({ name, kind }, index) => ({ name, index, head: headOf(Buffer.from(name), kind) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return (format, stored) => {
    const parts = [domain, number(format), named]
    for (const { index, head } of inOrder) {
      const value = stored[index] ?? null
      if (value === null) continue
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value), 'utf8')
      parts.push(head, number(bytes.length), bytes)
    }
    return Buffer.concat(parts)
  }
}

const headOf = (name: Buffer, kind: Kind): Buffer => Buffer.concat([number(name.length), name, Buffer.of(tags[kind])])

function number(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32BE(value)
  return bytes
}
