import type { KeyObject } from 'node:crypto'
import { Type } from 'typebox'
import { orNull, timestamp } from '../answers.ts'
import type { Algorithm } from './algorithms/algorithm.ts'
import { algorithmOf } from './algorithms.ts'
import { decodePublicKey } from './publickey.ts'
import type { MaterialRow } from './tables.ts'

/**
 * One key part of one version, as its verified row describes it. The key itself is elsewhere: in the token, or wrapped.
 */
export class Material {
  readonly row: MaterialRow
  readonly algorithm: Algorithm
  #publicKey: KeyObject | undefined

  constructor(row: MaterialRow) {
    this.row = row
    this.algorithm = algorithmOf(row.algorithm)
  }

  get id(): string {
    return this.row.id
  }

  /** False where only the public half of a pair was imported. */
  get complete(): boolean {
    return this.row.residence !== 'public'
  }

  /** @throws Error for a secret key, which has no public half */
  get publicKey(): KeyObject {
    if (this.row.publicKey === null) throw new Error(`${this.row.algorithm} keys have no public key`)
    this.#publicKey ??= decodePublicKey(this.row.publicKey)
    return this.#publicKey
  }
}

/** The members of describe. */
export const materialAnswer = {
  residence: Type.String(),
  state: Type.String(),
  origin: Type.String(),
  created_at: timestamp,
  created_by: Type.String(),
  local: Type.Boolean(),
  never_extractable: Type.Boolean(),
  always_sensitive: Type.Boolean(),
  ever_plaintext: Type.Boolean(),
  exportable: Type.Boolean(),
  fingerprint: orNull(Type.String()),
}

/** Residence and history as key read shows them; snake_case, ready for the wire. Times in RFC 3339. */
export const describe = (row: MaterialRow): Record<string, unknown> => ({
  residence: row.residence,
  state: row.state,
  origin: row.origin,
  created_at: new Date(row.createdAt).toISOString(),
  created_by: row.createdBy,
  local: row.local,
  never_extractable: row.neverExtractable,
  always_sensitive: row.alwaysSensitive,
  ever_plaintext: row.everPlaintext,
  exportable: row.exportable,
  fingerprint: row.fingerprint === null ? null : row.fingerprint.toString('hex'),
})
