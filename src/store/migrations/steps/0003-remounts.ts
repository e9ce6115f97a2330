import { integers, sealed } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const remounts = sealed('remounts', [
  'source VARCHAR(255) NOT NULL',
  'target VARCHAR(255) NOT NULL',
  ...integers('moved_at'),
])

export const third: Migration = {
  number: 3,
  minReader: 1,
  run: (step) => step.statement(remounts),
}
