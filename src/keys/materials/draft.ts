import type { KeyObject } from 'node:crypto'
import type { New } from '../../store/table.ts'
import type { IncomingKey } from '../making/incomingkey.ts'
import type { materialsTable, Part } from '../tables.ts'

/** What to make. */
export interface Specification {
  /** A type of the algorithm table. */
  readonly algorithm: string
  /** HMAC secrets only; absent or 0 is the default. */
  readonly sizeBytes?: number | undefined
  readonly exportable: boolean
  readonly part: Part
  /** Where a pair is to live; absent: where residence.ts says. */
  readonly residence?: 'wrapped' | 'token' | undefined
  /** Whether the key is a root, of which keys are derived (extraction.ts makes the part for that). */
  readonly derived?: boolean | undefined
  /** Whether the key forbids that an HMAC secret that is made here is ever in memory. */
  readonly hmacInHsmOnly?: boolean | undefined
  /** The key, where it was made elsewhere, or the public half of one that is not here; absent: the token makes one. */
  readonly given?: IncomingKey | KeyObject | undefined
  /** Accessor of the token that asked. */
  readonly createdBy: string
}

/** Everything of a row but whose it is: a key that was made and is not stored yet. */
export interface Draft {
  readonly fields: Omit<New<typeof materialsTable>, 'owner' | 'version'>
  /** Keys that stay in the token: the row that says a token object was meant (residents.ts). */
  readonly intent: string | undefined
}

/** Whose a material is. */
export interface Owner {
  /** Mount uuid, '' outside mounts. */
  readonly mount: string
  /** Uuid of the key. */
  readonly key: string
  readonly version: number
}
