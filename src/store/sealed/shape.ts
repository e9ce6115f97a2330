import type { Column, Stored, Table } from '../table.ts'
import { column } from '../table.ts'
import { type Canonical, canonicalForm } from './canonical.ts'

/** A column as SQL knows it. */
export interface Field {
  readonly property: string
  readonly name: string
  readonly column: Column<unknown>
}

/** The standard fields of sealed rows that the MAC covers. */
const sealedColumns: Record<string, Column<unknown>> = {
  id: column.text(),
  namespace: column.text(),
  mount: column.text(),
  rev: column.integer(),
  epoch: column.integer(),
}

const snake = (property: string): string => property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export const quoted = (name: string): string => `\`${name}\``

/** A table's columns in their fixed order, and the conversion between rows of values and stored rows. */
export class Shape {
  readonly table: string
  readonly fields: readonly Field[]
  /** The bytes under the MAC. */
  readonly canonical: Canonical
  readonly #byProperty: ReadonlyMap<string, Field>

  constructor(table: Table) {
    this.table = table.name
    const columns = { ...(table.sealed ? sealedColumns : {}), ...table.columns }
    this.fields = Object.entries(columns).map(([property, column]) => ({ property, name: snake(property), column }))
    this.canonical = canonicalForm(
      table.name,
      this.fields.map(({ name, column }) => ({ name, kind: column.kind })),
    )
    this.#byProperty = new Map(this.fields.map((field) => [field.property, field]))
  }

  field(property: string): Field {
    const field = this.#byProperty.get(property)
    if (!field) throw new TypeError(`${this.table} has no column ${property}`)
    return field
  }

  /**
   * The stored values of a whole row; a missing column is NULL. Throws TypeError for NULL in a column that is not
   * nullable.
   */
  encode(row: Readonly<Record<string, unknown>>): Stored[] {
    for (const property of Object.keys(row)) this.field(property)
    return this.fields.map(({ property, column }) => {
      const value = row[property] ?? null
      if (value === null && !column.optional) throw new TypeError(`${this.table}.${property} is missing`)
      return column.encode(value)
    })
  }

  decode(stored: readonly Stored[]): Record<string, unknown> {
    return Object.fromEntries(
      this.fields.map(({ property, column }, index) => [property, column.decode(stored[index] ?? null)]),
    )
  }
}
