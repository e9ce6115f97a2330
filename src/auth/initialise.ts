import type { Clock } from '../clock.ts'
import type { Database } from '../store/database.ts'
import type { Transaction } from '../store/reader.ts'
import { insertToken, tokenTally } from './count.ts'
import { createPolicies } from './policies.ts'
import { policyTable } from './policytable.ts'
import { type CredentialKeys, prepareToken, rootToken, tokenTable } from './token.ts'

/**
 * The access of a new installation: the default policy under its head, and the root token.
 * @param options.custom the root token's text, if the operator chose one
 * @returns the root token to print, and `write`, which stores everything in the transaction of an initialisation, also
 *   of a second one after a crash of the first
 * @throws ApiError 400 for a custom text that is not allowed
 */
export async function prepareAccess(options: {
  database: Database
  keys: CredentialKeys
  clock: Clock
  custom?: string | undefined
}): Promise<{ rootToken: string; write(tx: Transaction): Promise<void> }> {
  const { database, keys, clock, custom } = options
  const now = clock.wall()
  const { credential, row } = await prepareToken(keys, now, rootToken(0, custom))
  return {
    rootToken: credential,
    async write(tx) {
      const tokens = database.table(tokenTable)
      if (!(await database.table(policyTable).find(tx, { name: 'default' }))) await createPolicies(database, tx, now)
      // The root token of an unfinished initialisation was never printed.
      tx.tally(tokenTally, -(await tokens.removeWhere(tx, { path: row.path })))
      await insertToken(database, tx, row)
    },
  }
}
