/** The columns of a key's sealed row that the rules use. */
export interface Attributes {
  readonly type: string
  readonly exportable: boolean
  readonly allowPlaintextBackup: boolean
  readonly deletionAllowed: boolean
  readonly autoRotateSeconds: number
  readonly latestVersion: number
  readonly minDecryptionVersion: number
  readonly minEncryptionVersion: number
  readonly minAvailableVersion: number
  readonly imported: boolean
  readonly allowRotation: boolean
  readonly softDeleted: boolean
  readonly hmacInHsmOnly: boolean | null
}

/** One version of a key. Its parts are ids of rows that keys/ owns. */
export interface Version {
  readonly version: number
  readonly material: string
  readonly hmacMaterial: string | null
  /** The secret from which a derived key's keys are derived; null for other keys. */
  readonly prkMaterial: string | null
  /** 0 to 3: the kind of its convergent encryption (keys/use/derived.ts). */
  readonly convergentVersion: number
  /** Uuid of the managed key that holds the material; null for other keys. */
  readonly managedKey: string | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** PEM, leaf first. */
  readonly certificateChain: string | null
}

/** All live versions of a key; `versions` holds every number from the floor to the latest. */
export interface Ring<Row extends Attributes = Attributes> {
  readonly key: Row
  readonly versions: ReadonlyMap<number, Version>
  /** True when just read from the database: then it includes every rotation that any caller could have seen. */
  readonly current?: true
}
