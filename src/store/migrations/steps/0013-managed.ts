import type { Migration } from '../migration.ts'

/** Finds the versions that use a managed key: a key in use is not deleted. */
export const thirteenth: Migration = {
  number: 13,
  minReader: 5,
  async run(step) {
    await step.statement(
      'ALTER TABLE transit_versions ADD KEY transit_versions_by_managed (managed_key, key_id, version)',
    )
  },
}
