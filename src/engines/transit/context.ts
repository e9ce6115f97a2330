import type { Clock } from '../../clock.ts'
import type { ManagedKeys } from '../../keys/managed/keys.ts'
import type { Material } from '../../keys/material.ts'
import type { KeyExport } from '../../keys/transfer/keyexport.ts'
import type { KeyImport } from '../../keys/transfer/keyimport.ts'
import type { Approval } from '../../keys/use/approval.ts'
import type { Cipher } from '../../keys/use/cipher.ts'
import type { Derived } from '../../keys/use/derived.ts'
import type { Hmacs } from '../../keys/use/hmac.ts'
import type { RandomSource } from '../../keys/use/random.ts'
import type { RsaCipher } from '../../keys/use/rsacipher.ts'
import type { Signer } from '../../keys/use/signer.ts'
import type { Caller, MaybePromise } from '../../route.ts'
import type { KeyChanges } from './ring/changes.ts'
import type { Keys } from './ring/keys.ts'
import type { Rings } from './ring/rings.ts'
import type { KeyRotation } from './ring/rotation.ts'
import type { Settings } from './ring/settings.ts'
import type { VersionStore } from './ring/versionstore.ts'

/** What the routes of Transit work with. */
export interface TransitContext {
  readonly rings: Rings
  readonly keys: Keys
  readonly versions: VersionStore
  readonly changes: KeyChanges
  readonly rotation: KeyRotation
  readonly keyImport: KeyImport
  readonly keyExport: KeyExport
  readonly clock: Clock
  readonly settings: Settings
  readonly approval: Approval
  readonly cipher: Cipher
  readonly derived: Derived
  readonly rsaCipher: RsaCipher
  readonly signer: Signer
  readonly hmacs: Hmacs
  readonly managed: ManagedKeys
  /** The key part behind a version's id; synchronous when cached. */
  material(id: string): MaybePromise<Material>
  random(source: RandomSource, bytes: number): MaybePromise<Buffer>
}

/** The accessor by which a key's history names who made it. */
export const makerOf = (caller: Caller | undefined): string => caller?.accessor ?? ''
