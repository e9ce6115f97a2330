import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { rolesTable } from './table.ts'

/** Roles that are looked at: for a warning, not a promise. */
const rolesRead = 100

/** How many of the first roles of a mount name an issuer in one of these ways. */
export async function rolesReferringTo(
  database: Database,
  { uuid: mount }: Mount,
  names: readonly string[],
): Promise<number> {
  const page = { by: 'name', limit: rolesRead } as const
  const rows = await database.read((q) => database.table(rolesTable).list(q, { mount }, page))
  return rows.filter(({ settings }) => names.includes(settings.issuer_ref ?? 'default')).length
}
