import type { Draft, Specification } from '../../../keys/materials/materials.ts'
import type { KeyRow, VersionRow } from './tables.ts'

/** Of a key, what its versions are made by. */
export type Origin = Pick<KeyRow, 'type' | 'exportable' | 'allowPlaintextBackup' | 'keySize' | 'derived' | 'kdf'>

/** Makes a part of a version, or brings it from elsewhere. */
export type MakePart = (wanted: Specification) => Promise<Draft>

/** The parts of a version, made and not stored yet. */
export interface Drafts {
  readonly key: Draft
  readonly prk: Draft | undefined
  readonly hmac: Draft | undefined
}

/** What a version brings from elsewhere. */
export type VersionFacts = Partial<
  Pick<VersionRow, 'convergentVersion' | 'createdAt' | 'certificateChain' | 'managedKey'>
>

/** A version from elsewhere. */
export interface Arrival {
  readonly version: number
  readonly drafts: Drafts
  readonly facts?: VersionFacts
}

/** A version that lies in a token of somebody else, under a managed key of that uuid. */
export interface ManagedDraft {
  readonly id: string
  readonly draft: Draft
}
export const factsOf = (managed: ManagedDraft | undefined): VersionFacts => (managed ? { managedKey: managed.id } : {})
