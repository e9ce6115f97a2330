import { column, defineTable } from '../../../store/table.ts'
import type { RoleSettings } from './fields.ts'

/** One row per role: its settings as given, under their wire names. */
export const rolesTable = defineTable(
  'pki_roles',
  { name: column.text(), settings: column.json<Partial<RoleSettings>>() },
  { sealed: true },
)

/** Names for listings: unverified, from an index alone. A role is verified when it is used. */
export const roleNames = defineTable('pki_roles', { mount: column.text(), name: column.text() }, { sealed: false })
