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

/** What is known of a serial number of a mount, from whichever site, and the answers that were signed for it. */
export interface KnownSerial {
  readonly certificate: CertificateRow | undefined
  /** Certificates that were not stored can be revoked too. */
  readonly revocation: RevocationRow | undefined
  /** They go when a revocation does away with this object in the cache. */
  readonly answers: PreparedAnswers
}

const cachedAtMost = 10_000

/**
 * Serial numbers that OCSP was asked about, in a coherent cache. It is told of revocations under the same name as the cache of
 * certificates, so that no worker has what a revocation replaced when that is acknowledged.
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

  /** From the cache at this very moment, or not at all. */
  peek(name: CertificateName): KnownSerial | undefined {
    return this.#cache.peek(cacheKey(name))
  }

  /** As peek, else read on the lane of strangers; undefined where nothing is stored. @throws ApiError 503 when the lane is full */
  find(name: CertificateName): MaybePromise<KnownSerial | undefined> {
    return this.#cache.get(cacheKey(name))
  }
}
