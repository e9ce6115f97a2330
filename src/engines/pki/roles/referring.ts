import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { rolesTable } from './table.ts'

/** The number of roles to read: the result is for a warning only. */
const rolesRead = 100

/** The number of roles, among the first of a mount, that name an issuer in one of these ways. */
export async function rolesReferringTo(
  database: Database,
  { uuid: mount }: Mount,
  names: readonly string[],
): Promise<number> {
  const page = { by: 'name', limit: rolesRead } as const
  const rows = await database.read((q) => database.table(rolesTable).list(q, { mount }, page))
  return rows.filter(({ settings }) => names.includes(settings.issuer_ref ?? 'default')).length
}
