import { LRUCache } from 'lru-cache'
import { type ApiError, unavailable } from '../../../errors.ts'
import type { DamagedRow } from '../../../store/faults.ts'
import type { OnAlarm } from '../crl/alarm.ts'
import type { Scope } from '../crl/tables.ts'

const repairMilliseconds = 60_000
const remembered = 1000

/** The lists of a CRL issuer in a mount. */
export interface Repaired {
  readonly mount: string
  readonly crlIssuer: string
  readonly scope: Scope
}

interface RepairsOptions {
  readonly onAlarm: OnAlarm
  /** Rebuilds lists, in the background. Never rejects. */
  build(lists: Repaired): Promise<void>
}

/** Raises an alarm about lists that were edited, removed or put back in SQL, and has them rebuilt. */
export class Repairs {
  readonly #options: RepairsOptions
  /** Recent repairs, by the id of the damaged row: the list is requested again and again. */
  readonly #lately = new LRUCache<string, true>({ max: remembered, ttl: repairMilliseconds })

  constructor(options: RepairsOptions) {
    this.#options = options
  }

  /** @returns the error for the request that met the damage */
  begin(lists: Repaired, damage: DamagedRow): ApiError {
    if (!this.#lately.has(damage.id)) {
      this.#lately.set(damage.id, true)
      this.alarm(lists.crlIssuer, damage)
      void this.#options.build(lists)
    }
    return unavailable('the revocation list was changed in the database, and is being made again', { cause: damage })
  }

  alarm(crlIssuer: string, damage: DamagedRow): void {
    const text = `a published revocation list was changed in the database: ${damage.message}`
    this.#options.onAlarm({ crlIssuer, site: undefined, text })
  }
}
