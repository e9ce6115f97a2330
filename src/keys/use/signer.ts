import { after } from '../../after.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { mechanismName } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import type { Scheme, Signature, SignRequest } from '../algorithms/signature.ts'
import { type Blobs, heldByToken } from '../live/blobs.ts'
import type { Handles } from '../live/handles.ts'
import type { Material } from '../material.ts'
import type { Approval } from './approval.ts'
import { nameRefusal } from './refusal.ts'

export interface SignerOptions {
  readonly hsm: Hsm
  readonly blobs: Blobs
  readonly handles: Handles
  readonly approval: Approval
}

/** @throws ApiError 400 when keys of that type do not sign */
export function signatureOf({ algorithm }: Material, what: 'signing' | 'verification'): Signature {
  if (algorithm.signature !== undefined) return algorithm.signature
  throw badRequest(`key type ${algorithm.name} does not support ${what}`)
}

/** Digests of public input are made on the host, signatures in the token. */
export class Signer {
  readonly #options: SignerOptions

  constructor(options: SignerOptions) {
    this.#options = options
  }

  /** @returns the signature's bytes @throws ApiError 400 naming what does not fit */
  sign(material: Material, input: Uint8Array, scheme: Scheme): MaybePromise<Buffer> {
    const { hsm, blobs, approval } = this.#options
    const signature = signatureOf(material, 'signing')
    if (!material.complete) throw badRequest('requested version for signing does not contain a private part')
    if (signature.hashes) approval.checkSigning(scheme.hash)
    const { onHost } = signature
    if (onHost && !heldByToken(hsm, material)) return blobs.open(material, (secret) => onHost(secret, input))
    return this.#inToken(material, signature.request(input, scheme, hsm.capabilities))
  }

  #inToken(material: Material, { mechanism, message, bytes, encode }: SignRequest): MaybePromise<Buffer> {
    const { hsm, handles } = this.#options
    const signed = nameRefusal(mechanismName(mechanism.type), () =>
      handles.use(material, (key) => hsm.sign(key, mechanism, message, bytes)),
    )
    return encode === undefined ? signed : after(signed, encode)
  }
}
