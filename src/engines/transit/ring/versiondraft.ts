import type { Draft, Specification } from '../../../keys/materials/draft.ts'
import type { KeyRow, VersionRow } from './tables.ts'

/** The attributes of a key that determine its versions. */
export type KeySpecification = Pick<
  KeyRow,
  'type' | 'exportable' | 'allowPlaintextBackup' | 'keySize' | 'derived' | 'kdf'
> &
  Partial<Pick<KeyRow, 'hmacInHsmOnly'>>

/** Makes a part of a version, or imports it. */
export type PreparePart = (specification: Specification) => Promise<Draft>

/** The parts of a version, made but not stored yet. */
export interface VersionDraft {
  readonly key: Draft
  readonly prk: Draft | undefined
  readonly hmac: Draft | undefined
}

/** Columns of a version that can differ from those of other new versions. */
export type VersionFields = Partial<
  Pick<VersionRow, 'convergentVersion' | 'createdAt' | 'certificateChain' | 'managedKey'>
>

/** A version of an imported or restored key. */
export interface ImportedVersion {
  readonly version: number
  readonly draft: VersionDraft
  readonly fields?: VersionFields
}

/** A version in an external token, under the managed key with that uuid. */
export interface ManagedDraft {
  readonly id: string
  readonly draft: Draft
}

export const managedFields = (managed: ManagedDraft | undefined): VersionFields =>
  managed ? { managedKey: managed.id } : {}
