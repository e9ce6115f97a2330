import type { Mount } from '../../../route.ts'
import type { RevocationRow } from '../certificates/tables.ts'

/** The publisher of the lists that name revocations. Mounts are given by their uuid alone. */
export interface Publication {
  /**
   * Resolves when a list that names the revocation is published, or at once if revocations do not wait for that list.
   * @returns the reason when no list will name it
   */
  revoked(mount: Pick<Mount, 'uuid'>, row: RevocationRow): Promise<string | undefined>
  /** Builds all lists of a mount again. @returns warnings */
  rebuild(mount: Pick<Mount, 'uuid'>): Promise<readonly string[]>
}
