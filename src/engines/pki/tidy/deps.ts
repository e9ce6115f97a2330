import type { Clock } from '../../../clock.ts'
import type { Job } from '../../../job.ts'
import type { Logger } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { IssuerRows } from '../authority/issuerrows.ts'
import type { Certificates } from '../certificates/certificates.ts'
import type { LedgerName } from '../revocation/ledgers.ts'

/** The entries that have left the segments. */
export interface Released {
  /** Whether a revocation that was to leave is in no segment, now or later; its `notAfter` in milliseconds. */
  has(revocation: { readonly seq: number; readonly notAfter: number }): boolean
}

/** The changes that tidy makes to revocation lists and revocations. */
export interface TidiedLists {
  /** Takes all revocations committed before into the segments from which lists are built. */
  absorb(of: LedgerName): Promise<unknown>
  /**
   * Takes entries of certificates that ended by a given time out of the segments. An entry stays until a complete list
   * made after its certificate's end has carried it (RFC 5280 section 3.3).
   * @param end milliseconds; ends of certificates are rounded up to the next second for the comparison
   */
  removeEntries(of: LedgerName, end: number): Promise<Released>
  /** Rebuilds and publishes every list of a mount. @returns warnings */
  rebuild(mount: Pick<Mount, 'uuid'>): Promise<readonly string[]>
  /** Removes the lists of CRL issuers that no longer have an issuer in the mount, and rebuilds those of the others. */
  afterDeletion(mount: Pick<Mount, 'uuid'>, gone: ReadonlySet<string>): Promise<readonly string[]>
  /** Removes the lists of a CRL issuer from a mount, and from the published ones in its manifest. @param mount uuid */
  withdraw(mount: string, crlIssuer: string): Promise<void>
  /**
   * Finds the issuers of recorded revocations without one.
   * @returns how many revocations had none, and for how many one was found
   */
  associate(mount: string, signal: AbortSignal): Promise<{ readonly missing: number; readonly fixed: number }>
}

export interface TidyDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** This node's site. */
  readonly site: string
  readonly authorities: Authorities
  readonly issuerRows: IssuerRows
  readonly certificates: Pick<Certificates, 'count' | 'countRevoked'>
  readonly lists: TidiedLists
  /** Starts a leased job in the background; false when it is already running. */
  start(job: Job): Promise<boolean>
}
