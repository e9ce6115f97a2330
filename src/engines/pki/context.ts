import type { Clock } from '../../clock.ts'
import type { MaybePromise, Mount } from '../../route.ts'
import type { CsrContents } from './roles/request.ts'
import type { Roles } from './roles/roles.ts'

/** What the routes of the certificate authority work with. */
export interface PkiContext {
  readonly roles: Roles
  readonly clock: Clock
  /** Whether an issuer of the mount answers to a name, an id or `default`. */
  issuerExists(mount: Mount, reference: string): MaybePromise<boolean>
  /** Reads a CSR in PEM. @throws ApiError 400 */
  readonly readCsr: ((pem: string) => CsrContents) | undefined
}
