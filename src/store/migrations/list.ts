import { first } from './0001-first.ts'
import { second } from './0002-leases.ts'
import { third } from './0003-remounts.ts'
import { fourth } from './0004-audit.ts'
import { fifth } from './0005-ring.ts'
import { sixth } from './0006-managed.ts'
import { seventh } from './0007-versions.ts'
import { eighth } from './0008-growth.ts'
import { ninth } from './0009-jobs.ts'
import { tenth } from './0010-roles.ts'
import { eleventh } from './0011-certificates.ts'
import { twelfth } from './0012-authorities.ts'
import { thirteenth } from './0013-managed.ts'
import { fourteenth } from './0014-revocation.ts'
import { fifteenth } from './0015-recovery.ts'
import { sixteenth } from './0016-residents.ts'
import { seventeenth } from './0017-hmac.ts'
import { eighteenth } from './0018-settings.ts'
import { nineteenth } from './0019-tokens.ts'
import { twentieth } from './0020-leasecounts.ts'
import { twentyFirst } from './0021-ranges.ts'
import type { Migration } from './migration.ts'

/** All changes of the schema, in order; number n is at index n - 1. */
export const migrations: readonly Migration[] = [
  first,
  second,
  third,
  fourth,
  fifth,
  sixth,
  seventh,
  eighth,
  ninth,
  tenth,
  eleventh,
  twelfth,
  thirteenth,
  fourteenth,
  fifteenth,
  sixteenth,
  seventeenth,
  eighteenth,
  nineteenth,
  twentieth,
  twentyFirst,
]
