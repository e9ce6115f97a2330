import type { Clock } from '../../clock.ts'
import type { Approval } from '../../keys/approval.ts'
import type { Cipher } from '../../keys/cipher.ts'
import type { Derived } from '../../keys/derived.ts'
import type { Hmacs } from '../../keys/hmac.ts'
import type { Importing } from '../../keys/importing.ts'
import type { Leaving } from '../../keys/leaving.ts'
import type { ManagedKeys } from '../../keys/managed/keys.ts'
import type { Material } from '../../keys/material.ts'
import type { RandomSource } from '../../keys/random.ts'
import type { RsaCipher } from '../../keys/rsacipher.ts'
import type { Signer } from '../../keys/signer.ts'
import type { Caller, MaybePromise } from '../../route.ts'
import type { Rings } from './rings.ts'
import type { Settings } from './settings.ts'

/** What the routes of transit are given. */
export interface TransitContext {
  readonly rings: Rings
  readonly importing: Importing
  readonly leaving: Leaving
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

/** Whom a key's history names as its maker. */
export const makerOf = (caller: Caller | undefined): string => caller?.accessor ?? ''
