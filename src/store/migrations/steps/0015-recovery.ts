import { sealed } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const recovery = sealed('recovery', [
  'secret_hash BINARY(32) NOT NULL',
  'nonce VARCHAR(36)',
  'otp VARBINARY(64)',
  'started_at BIGINT',
])

/** The hash of the secret that allows sys/generate-root, while there is one, and the attempt under way. */
export const fifteenth: Migration = {
  number: 15,
  minReader: 14,
  run: (step) => step.statement(recovery),
}
