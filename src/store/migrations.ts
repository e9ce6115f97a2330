import type { Migration } from './migration.ts'
import { first } from './migrations/0001-first.ts'
import { second } from './migrations/0002-leases.ts'
import { third } from './migrations/0003-remounts.ts'
import { fourth } from './migrations/0004-audit.ts'
import { fifth } from './migrations/0005-ring.ts'
import { sixth } from './migrations/0006-managed.ts'

/** All changes of the schema, in order; number n is at index n - 1. */
export const migrations: readonly Migration[] = [first, second, third, fourth, fifth, sixth]
