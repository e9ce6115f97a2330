import type { Hsm } from '../../hsm/hsm.ts'
import type { Logger } from '../../log.ts'
import type { Counter } from '../../metrics.ts'
import type { MaybePromise } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Blobs } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'
import type { Materials } from '../materials/materials.ts'
import type { Opening } from '../materials/opening.ts'
import type { Approval } from './approval.ts'
import { Certification } from './certification.ts'
import { Cipher } from './cipher.ts'
import { Derivation } from './derivation.ts'
import { Derived } from './derived.ts'
import { Hmacs } from './hmac.ts'
import { type RandomSource, random } from './random.ts'
import { RsaCipher } from './rsacipher.ts'
import { Signer } from './signer.ts'
import { Usage } from './usage.ts'

/** Cryptography with the cluster's keys. */
export interface Operations {
  readonly approval: Approval
  readonly cipher: Cipher
  readonly derived: Derived
  readonly rsaCipher: RsaCipher
  readonly signer: Signer
  readonly certification: Certification
  readonly hmacs: Hmacs
  /** The key part of that id; synchronous when cached. */
  material(id: string): MaybePromise<Material>
  random(source: RandomSource, bytes: number): MaybePromise<Buffer>
}

export interface OperationsOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly blobs: Blobs
  readonly handles: Handles
  readonly materials: Materials
  readonly opening: Opening
  readonly approval: Approval
  readonly strict: boolean
  /** Usage counters held at most. */
  readonly cacheLimit: number
  /** Encryptions that were answered with a warning. */
  readonly overused: Counter
  readonly log: Logger
}

/** Puts the operations together; token and database are asked only when one of them is used. */
export function createOperations(options: OperationsOptions): Operations {
  const { hsm, database, blobs, handles, materials, opening, approval, strict, cacheLimit, overused, log } = options
  const cipher = new Cipher({ hsm, blobs, handles, strict, usage: new Usage(database, cacheLimit), overused })
  const signer = new Signer({ hsm, blobs, handles, approval })
  return {
    approval,
    cipher,
    derived: new Derived(new Derivation({ hsm, handles, strict }), cipher),
    rsaCipher: new RsaCipher({ hsm, handles }),
    signer,
    certification: new Certification({ signer, handles, log }),
    hmacs: new Hmacs({ hsm, blobs, handles, opening, strict }),
    material: (id) => materials.fetch(id),
    random: (source, bytes) => random(hsm, source, bytes),
  }
}
