import type { Migration } from './migration.ts'
import { first } from './steps/0001-first.ts'
import { second } from './steps/0002-leases.ts'
import { third } from './steps/0003-remounts.ts'
import { fourth } from './steps/0004-audit.ts'
import { fifth } from './steps/0005-ring.ts'
import { sixth } from './steps/0006-managed.ts'
import { seventh } from './steps/0007-versions.ts'
import { eighth } from './steps/0008-growth.ts'
import { ninth } from './steps/0009-jobs.ts'
import { tenth } from './steps/0010-roles.ts'
import { eleventh } from './steps/0011-certificates.ts'
import { twelfth } from './steps/0012-authorities.ts'
import { thirteenth } from './steps/0013-managed.ts'
import { fourteenth } from './steps/0014-revocation.ts'
import { fifteenth } from './steps/0015-recovery.ts'
import { sixteenth } from './steps/0016-residents.ts'
import { seventeenth } from './steps/0017-hmac.ts'
import { eighteenth } from './steps/0018-settings.ts'
import { nineteenth } from './steps/0019-tokens.ts'
import { twentieth } from './steps/0020-leasecounts.ts'
import { twentyFirst } from './steps/0021-ranges.ts'
import { twentySecond } from './steps/0022-trails.ts'
import { twentyThird } from './steps/0023-sharedlog.ts'

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
  twentySecond,
  twentyThird,
]
