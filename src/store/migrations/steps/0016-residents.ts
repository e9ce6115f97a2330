import type { Migration } from '../migration.ts'

/**
 * Rows of keys that live only in a token name the token. An older program would read them without that column and find
 * their seals broken; it does not keep the head of the set of KEKs either.
 */
export const sixteenth: Migration = {
  number: 16,
  minReader: 16,
  async run(step) {
    for (const table of ['materials', 'intents'])
      await step.statement(`ALTER TABLE ${table} ADD COLUMN token_serial VARCHAR(64)`)
  },
}
