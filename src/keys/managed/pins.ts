import { randomUUIDv7 } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Keks } from '../kek/keks.ts'
import type { Blobs } from '../live/blobs.ts'
import { wrapSecret } from '../making/secret.ts'
import type { Material } from '../material.ts'
import type { Draft } from '../materials/draft.ts'

export interface PinsOptions {
  readonly hsm: Hsm
  readonly keks: Keks
  readonly blobs: Blobs
  readonly clock: Clock
}

/** PINs of other tokens, each a generic secret under the open KEK: rotated with it, and in clear only for a login. */
export class Pins {
  readonly #options: PinsOptions

  constructor(options: PinsOptions) {
    this.#options = options
  }

  /** @throws ApiError 400 for an impossible PIN */
  async seal(pin: string, createdBy: string): Promise<Draft> {
    const { hsm, keks, clock } = this.#options
    const secret = Buffer.from(pin)
    // PKCS#11 leaves the length to the token; ours is that of a wrapped secret.
    if (secret.length > 255 || secret.includes(0)) throw badRequest('pin must be 1 to 255 bytes without a zero')
    try {
      const kek = await keks.active('open')
      return {
        intent: undefined,
        fields: {
          id: randomUUIDv7(),
          part: 'pin',
          algorithm: 'hmac',
          // Tokens pad secrets with zeros before they wrap them: only the true length says where the PIN ends.
          sizeBytes: secret.length,
          residence: 'enveloped',
          kek: kek.row.id,
          mechanism: hsm.capabilities.kwp,
          blob: await wrapSecret(hsm, kek, secret),
          exportable: false,
          ...{ local: false, neverExtractable: false, alwaysSensitive: false, everPlaintext: true },
          origin: 'imported',
          createdAt: clock.wall(),
          createdBy,
          state: 'active',
        },
      }
    } finally {
      secret.fill(0)
    }
  }

  open(material: Material): Promise<string> {
    return this.#options.blobs.open(material, (secret) => secret.toString())
  }
}
