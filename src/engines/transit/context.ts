import type { Cipher } from '../../keys/cipher.ts'
import type { Hmacs } from '../../keys/hmac.ts'
import type { Material } from '../../keys/material.ts'
import type { RandomSource } from '../../keys/random.ts'
import type { Signer } from '../../keys/signer.ts'
import type { Caller, MaybePromise } from '../../route.ts'
import type { Rings } from './rings.ts'

/** What the routes of transit are given. */
export interface TransitContext {
  readonly rings: Rings
  readonly cipher: Cipher
  readonly signer: Signer
  readonly hmacs: Hmacs
  /** The key part behind a version's id; synchronous when cached. */
  material(id: string): MaybePromise<Material>
  random(source: RandomSource, bytes: number): MaybePromise<Buffer>
}

/** Whom a key's history names as its maker. */
export const makerOf = (caller: Caller | undefined): string => caller?.accessor ?? ''
