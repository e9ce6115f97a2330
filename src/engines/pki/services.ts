import type { Clock } from '../../clock.ts'
import type { Job } from '../../job.ts'
import type { TransientPairs } from '../../keys/making/transient.ts'
import type { ManagedKeys } from '../../keys/managed/managedkeys.ts'
import type { AuthorityKeys } from '../../keys/materials/authoritykeys.ts'
import type { Materials } from '../../keys/materials/materials.ts'
import type { Operations } from '../../keys/use/operations.ts'
import type { Leases } from '../../leases/leases.ts'
import type { Logger } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Database } from '../../store/database.ts'
import { Authorities } from './authority/authorities.ts'
import { IssuerRows } from './authority/issuerrows.ts'
import { Certificates } from './certificates/certificates.ts'
import { CertificateLists } from './certificates/listing.ts'
import type { PkiContext } from './context.ts'
import { CrlBuilder } from './crl/builder.ts'
import { Retirement } from './crl/retirement.ts'
import { Issuance } from './issuing/issuance.ts'
import { materialFinder } from './keys/keymaterial.ts'
import { KeyRows } from './keys/keyrows.ts'
import { NewKeys } from './keys/newkeys.ts'
import { Signers } from './keys/signers.ts'
import { Responder } from './ocsp/responder.ts'
import { alarmTo } from './publication/alarms.ts'
import { Crls } from './publication/crls.ts'
import { ListHealth } from './publication/health.ts'
import { Upkeep } from './publication/upkeep.ts'
import { Removal } from './removal.ts'
import { requestJobs } from './revocation/answering.ts'
import { Associations } from './revocation/associations.ts'
import { RevocationLists } from './revocation/listing.ts'
import { RevocationRequests } from './revocation/requests.ts'
import { Revocations } from './revocation/revocations.ts'
import { Revoker } from './revocation/revoker.ts'
import { Roles } from './roles/roles.ts'
import { shareStoredCounts } from './tidy/storedcounts.ts'
import { tidiedLists } from './tidy/tidiedlists.ts'
import { Tidying } from './tidy/tidying.ts'

export interface PkiOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly leases: Leases
  readonly operations: Operations
  readonly materials: Materials
  readonly managed: ManagedKeys
  readonly transients: TransientPairs
  readonly authorityKeys: AuthorityKeys
  /** This node's site: certificates, revocation lists and URLs belong to a site. */
  readonly site: string
  /** The epoch of the database, from 1. */
  readonly epoch: number
  /** Writes a line of the audit log that belongs to no request. */
  report(path: string, text: string): void
  /** Starts a leased job in the background; false when it is already running. */
  start(job: Job): Promise<boolean>
}

/** Makes the parts of a certificate authority, in the order of dependency. */
export function createServices(options: PkiOptions) {
  const { database, clock, metrics } = options
  const issuing = createIssuing(options)
  const { authorities, certificates, signers, roles } = issuing
  const onAlarm = alarmTo(options)
  const builder = new CrlBuilder({ ...options, onAlarm })
  const { manifests, listed } = builder
  const crls = new Crls({ ...options, authorities, signers, builder, onAlarm })
  const listHealth = new ListHealth({ ...options, authorities, crls })
  metrics.shared(
    'strongroom.pki.crl.next_update.seconds',
    'Seconds until the next update of the complete lists of this site that expire first.',
    () => listHealth.nextUpdates(),
  )
  metrics.shared(
    'strongroom.pki.ocsp.issuers_without_signer',
    'CRL issuers of this site without an issuer that may sign OCSP answers, where OCSP is enabled.',
    async () => [{ labels: {}, value: (await listHealth.summary()).issuers_without_ocsp_signer }],
  )
  const revocations = new Revocations(options)
  const requests = new RevocationRequests(options)
  const revocation = { ...options, authorities, certificates, revocations, requests, publication: crls }
  const revoker = new Revoker(revocation)
  const associations = new Associations(revocation)
  const lists = tidiedLists({ database, builder, crls, associations })
  const tidying = new Tidying({ ...options, ...issuing, lists })
  shareStoredCounts({ ...options, authorities, certificates })
  const context: PkiContext = {
    ...issuing,
    ...{ crls, tidying, revocations, revoker, requests, associations, publication: crls },
    revocationLists: new RevocationLists(options),
    ocsp: new Responder({ ...options, authorities, signers, listed, mend: crls.mend.bind(crls) }),
  }
  const jobs: Job[] = [
    tidying.upkeep,
    associations.job,
    ...requestJobs({ ...revocation, revoker }),
    ...new Upkeep({ ...options, authorities, crls, builder }).jobs,
    new Retirement({ database, clock, manifests }).job,
  ]
  return { context, jobs, listHealth, removal: new Removal({ ...options, roles, certificates, lists }) }
}

/** Authorities, their keys, and the parts that issue. */
function createIssuing(options: PkiOptions) {
  const { database, clock, leases, operations, materials, managed, transients, authorityKeys } = options
  const { certification } = operations
  const material = materialFinder({ database, fetch: (id) => operations.material(id) })
  const signers = new Signers({ certification, managed, material })
  return {
    ...{ database, clock, leases, managed, transients, signers, material },
    roles: new Roles(database),
    authorities: new Authorities(options),
    issuerRows: new IssuerRows(options),
    keyRows: new KeyRows(options),
    newKeys: new NewKeys({ authorityKeys, materials, managed, signers }),
    issuance: new Issuance(database),
    certificates: new Certificates(options),
    lists: new CertificateLists(options),
  }
}
