import type { Migration } from './migration.ts'
import { first } from './migrations/0001-first.ts'

/** All changes of the schema, in order; number n is at index n - 1. */
export const migrations: readonly Migration[] = [first]
