import type { Clock } from '../../../clock.ts'
import type { Job } from '../../../engine.ts'
import type { Logger } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { IssuerRows } from '../authority/issuerrows.ts'
import type { Certificates } from '../certificates/certificates.ts'

/** Whose entries: a CRL issuer (`crlIssuerOf`) at a site. */
export interface ListedBy {
  readonly crlIssuer: string
  readonly site: string
}

/** What has left the segments. */
export interface Released {
  /** Whether a revocation that was to leave is in no segment, now and later; its `notAfter` in milliseconds. */
  has(revocation: { readonly seq: number; readonly notAfter: number }): boolean
}

/** What tidy does to revocation lists and needs of revocations. */
export interface TidiedLists {
  /** Takes all revocations that were committed before into the segments that lists are made of. */
  absorb(of: ListedBy): Promise<unknown>
  /**
   * Takes entries of certificates that ended by a moment out of the segments that lists are made of. An entry stays until a
   * complete list that was made after its certificate's end has carried it (RFC 5280 section 3.3).
   * @param end milliseconds; ends of certificates are compared as their next whole second
   */
  removeEntries(of: ListedBy, end: number): Promise<Released>
  /** Builds and publishes every list of a mount anew. @returns warnings */
  rebuild(mount: Pick<Mount, 'uuid'>): Promise<readonly string[]>
  /** Removes the lists of CRL issuers that have no issuer in the mount any more, and builds those of the others anew. */
  afterDeletion(mount: Pick<Mount, 'uuid'>, gone: ReadonlySet<string>): Promise<readonly string[]>
  /** Takes the lists of a CRL issuer out of a mount, and out of what its manifest says is out. @param mount uuid */
  withdraw(mount: string, crlIssuer: string): Promise<void>
  /** Finds the issuers of recorded revocations that have none. @returns how many still have none */
  associate(mount: string, signal: AbortSignal): Promise<{ readonly missing: number }>
}

export interface TidyDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** This node's. */
  readonly site: string
  readonly authorities: Authorities
  readonly issuerRows: IssuerRows
  readonly certificates: Pick<Certificates, 'count' | 'countRevoked'>
  readonly lists: TidiedLists
  /** Starts a leased job in the background; false when it is running already. */
  start(job: Job): Promise<boolean>
}
