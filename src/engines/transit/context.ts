import type { Clock } from '../../clock.ts'
import type { ManagedKeys } from '../../keys/managed/managedkeys.ts'
import type { KeyExport } from '../../keys/transfer/keyexport.ts'
import type { KeyImport } from '../../keys/transfer/keyimport.ts'
import type { Operations } from '../../keys/use/operations.ts'
import type { Caller } from '../../route.ts'
import type { KeyChanges } from './ring/changes.ts'
import type { Keys } from './ring/keys.ts'
import type { Rings } from './ring/rings.ts'
import type { KeyRotation } from './ring/rotation.ts'
import type { Settings } from './ring/settings.ts'
import type { VersionStore } from './ring/versionstore.ts'

/** Everything the routes of Transit work with: key rings, and cryptography with their keys. */
export interface TransitContext extends Operations {
  readonly rings: Rings
  readonly keys: Keys
  readonly versions: VersionStore
  readonly changes: KeyChanges
  readonly rotation: KeyRotation
  readonly keyImport: KeyImport
  readonly keyExport: KeyExport
  readonly clock: Clock
  readonly settings: Settings
  readonly managed: ManagedKeys
}

/** The maker in a key's history: the caller's display name and an HMAC of its accessor. */
export const makerOf = (caller: Caller | undefined): string => caller?.maker ?? ''
