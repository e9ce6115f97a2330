import type { KeyObject } from 'node:crypto'
import type { New } from '../../store/table.ts'
import type { IncomingKey } from '../making/incomingkey.ts'
import type { materialsTable, Part } from '../tables.ts'

/** The key to make. */
export interface Specification {
  /** A type of the algorithm table. */
  readonly algorithm: string
  /** HMAC secrets only; absent or 0 is the default. */
  readonly sizeBytes?: number | undefined
  readonly exportable: boolean
  readonly part: Part
  /** Where a pair is to live; absent: where residence.ts says. */
  readonly residence?: 'wrapped' | 'token' | undefined
  /** Whether the key is a root, from which keys are derived (extraction.ts makes the part for that). */
  readonly derived?: boolean | undefined
  /** Whether an HMAC secret that is made here must never be in memory. */
  readonly hmacInHsmOnly?: boolean | undefined
  /** The key if it was made elsewhere, or its public half alone; absent: the token makes one. */
  readonly given?: IncomingKey | KeyObject | undefined
  /** Accessor of the token that asked. */
  readonly createdBy: string
}

/** A key that was made and is not stored yet: its row, without the owner. */
export interface Draft {
  readonly fields: Omit<New<typeof materialsTable>, 'owner' | 'version'>
  /** For keys that stay in the token: id of the row that announced the token object (residents.ts). */
  readonly intent: string | undefined
}

/** The owner of a material. */
export interface Owner {
  /** Mount uuid, '' outside mounts. */
  readonly mount: string
  /** Uuid of the key. */
  readonly key: string
  readonly version: number
}
