/** What a transit key is besides its material: the columns of its sealed row that rules look at. */
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
}

/** Where the parts of one version lie: ids of rows that keys/ owns. */
export interface Version {
  readonly version: number
  readonly material: string
  readonly hmacMaterial: string | null
  /** What a derived key's keys are made from; null for the rest. */
  readonly prkMaterial: string | null
  /** 0 to 3: how its encryption is convergent (keys/derived.ts). */
  readonly convergentVersion: number
  /** Uuid of the managed key whose material this is; null for keys of ours. */
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
  /** True of one that was just read: no rotation that anybody can have seen the work of is missing in it. */
  readonly current?: true
}
