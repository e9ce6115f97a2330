import type { Clock } from '../../clock.ts'
import type { TransientPairs } from '../../keys/making/transient.ts'
import type { ManagedKeys } from '../../keys/managed/managedkeys.ts'
import type { Material } from '../../keys/material.ts'
import type { Leases } from '../../leases/leases.ts'
import type { Caller, MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Authorities } from './authority/authorities.ts'
import type { IssuerRows } from './authority/issuerrows.ts'
import type { KeyRow } from './authority/tables.ts'
import type { Certificates } from './certificates/certificates.ts'
import type { CertificateLists } from './certificates/listing.ts'
import type { Issuance } from './issuing/issuance.ts'
import type { KeyRows } from './keys/keyrows.ts'
import type { NewKeys } from './keys/newkeys.ts'
import type { Signers } from './keys/signers.ts'
import type { Responder } from './ocsp/responder.ts'
import type { Crls } from './publication/crls.ts'
import type { Associations } from './revocation/associations.ts'
import type { RevocationLists } from './revocation/listing.ts'
import type { Publication } from './revocation/publication.ts'
import type { RevocationRequests } from './revocation/requests.ts'
import type { Revocations } from './revocation/revocations.ts'
import type { Revoker } from './revocation/revoker.ts'
import type { Roles } from './roles/roles.ts'
import type { Tidying } from './tidy/tidying.ts'

/** Everything the routes of the certificate authority work with. */
export interface PkiContext {
  readonly database: Database
  readonly clock: Clock
  readonly leases: Leases
  readonly roles: Roles
  readonly authorities: Authorities
  readonly issuerRows: IssuerRows
  readonly keyRows: KeyRows
  readonly newKeys: NewKeys
  readonly signers: Signers
  /** Key pairs of leaves. */
  readonly transients: TransientPairs
  readonly managed: ManagedKeys
  readonly issuance: Issuance
  readonly certificates: Certificates
  readonly lists: CertificateLists
  readonly ocsp: Responder
  readonly tidying: Tidying
  readonly revocations: Revocations
  readonly revoker: Revoker
  readonly requests: RevocationRequests
  readonly associations: Associations
  readonly revocationLists: RevocationLists
  readonly crls: Crls
  /** Publishes revocations on lists. */
  readonly publication: Publication
  /** The material of a key; synchronous when cached. @throws ApiError 400 for a key that was deleted meanwhile */
  material(key: KeyRow): MaybePromise<Material>
}

/** The maker in a key's history: the caller's display name and an HMAC of its accessor. */
export const makerOf = (caller: Caller | undefined): string => caller?.maker ?? ''
