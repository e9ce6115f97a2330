import type { Mount } from '../../../route.ts'
import type { RevocationRow } from '../certificates/tables.ts'

/** Whoever makes the lists on which revocations appear. Mounts are told by their uuid alone. */
export interface Publication {
  /**
   * Resolves when a list is out that names the revocation, or at once where none is to be waited for.
   * @returns why no list will name it
   */
  revoked(mount: Pick<Mount, 'uuid'>, row: RevocationRow): Promise<string | undefined>
  /** Makes all lists of a mount anew. @returns warnings */
  rebuild(mount: Pick<Mount, 'uuid'>): Promise<readonly string[]>
}
