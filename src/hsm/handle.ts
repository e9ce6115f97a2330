import { ApiError } from '../errors.ts'

let epochs = 0

/**
 * A number that no connection to a token had before it in this process. Every C_Initialize and every module has epochs
 * of its own, so that a handle can reach neither another key of its token nor a key of another token.
 */
export const nextEpoch = (): number => ++epochs

/** One object in a token: a number that means something only in its epoch. */
export class Handle {
  /** CK_OBJECT_HANDLE as pkcs11js wants it. */
  readonly value: Buffer
  readonly epoch: number
  /** A token object, which outlives sessions and epochs, though its number does not. */
  readonly persistent: boolean
  /** Uses under way; the object is destroyed only at 0. Counted by Hsm alone. */
  pins = 0
  /** `doomed`: destroy was asked for and waits for the pins. */
  state: 'live' | 'doomed' | 'gone' = 'live'

  constructor(value: Buffer, epoch: number, persistent = false) {
    this.value = value
    this.epoch = epoch
    this.persistent = persistent
  }
}

/**
 * The handle's object is gone: its epoch ended, it was destroyed, or the token says so. Fetch the key again and repeat;
 * a caller that cannot do so lets the 503 pass.
 */
export class StaleHandle extends ApiError {
  constructor(cause: string) {
    super(503, 'the key must be loaded again into the HSM', { retryAfterSeconds: 1, cause })
    this.name = 'StaleHandle'
  }
}
