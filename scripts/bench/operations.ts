import type { Operation, Operations } from './operation.ts'
import { get } from './operation.ts'
import { batches } from './operations/batches.ts'
import { certificates } from './operations/certificates.ts'
import { ciphers } from './operations/ciphers.ts'
import { hashes } from './operations/hashes.ts'
import { reads } from './operations/reads.ts'
import { revocation } from './operations/revocation.ts'
import { signatures } from './operations/signatures.ts'

const health: Operation = {
  serve: () => ({ initialized: true, sealed: false, standby: false }),
  ask: async () => ({ ...get('sys/health'), headers: {} }),
}

/** Every row of the table, in its order. */
export const operations: Operations = {
  'sys/health': health,
  ...ciphers,
  ...hashes,
  ...signatures,
  ...batches,
  ...reads,
  ...certificates,
  ...revocation,
}

/** @throws Error when the table has no such row */
export function operationOf(title: string): Operation {
  const operation = operations[title]
  if (operation === undefined) throw new Error(`no operation ${title}`)
  return operation
}
