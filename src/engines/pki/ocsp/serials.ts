import type { MaybePromise } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import {
  type CertificateName,
  type CertificateRow,
  cacheKey,
  certificateTable,
  nameOfKey,
  type RevocationRow,
  revocationTable,
} from '../certificates/tables.ts'
import { PreparedAnswers } from './prepared.ts'

/** A known serial number of a mount, of any site, and the answers signed for it. */
export interface KnownSerial {
  readonly certificate: CertificateRow | undefined
  /** Certificates that were not stored can be revoked too. */
  readonly revocation: RevocationRow | undefined
  /** Discarded when a revocation removes this object from the cache. */
  readonly answers: PreparedAnswers
}

const cachedAtMost = 10_000

/**
 * Serial numbers that OCSP was asked about, in a coherent cache. Revocations touch it under the same name as the cache
 * of certificates, so that no worker uses the old status once a revocation is acknowledged.
 */
export class KnownSerials {
  readonly #cache: CoherentCache<KnownSerial>

  constructor(database: Database) {
    this.#cache = database.cache({
      table: certificateTable.name,
      limit: cachedAtMost,
      lane: 'public',
      load: {
        joined: database.joined({
          tables: { certificate: certificateTable, revocation: revocationTable },
          key: nameOfKey,
          value: ({ certificate, revocation }) =>
            (certificate ?? revocation) && { certificate, revocation, answers: new PreparedAnswers() },
        }),
      },
    })
  }

  /** The value if it is cached and may be used at this very moment. */
  peek(name: CertificateName): KnownSerial | undefined {
    return this.#cache.peek(cacheKey(name))
  }

  /**
   * As peek, else read on the lane of public reads; undefined if nothing is stored. @throws ApiError 503 when the lane
   * is full
   */
  find(name: CertificateName): MaybePromise<KnownSerial | undefined> {
    return this.#cache.get(cacheKey(name))
  }
}
