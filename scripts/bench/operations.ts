import { hash } from 'node:crypto'
import type { RawToken } from './token.ts'

type Body = Readonly<Record<string, unknown>>

/** One operation in the two forms that Strongroom is compared with. */
export interface Operation {
  /** One call into the token, as tight as it goes; absent where there is none. */
  raw?(token: RawToken): unknown
  /** What the minimal server answers to a parsed body: the one call between decoding and encoding, and no check at all. */
  serve(token: RawToken, body: Body): Body
  /** A body that the minimal server can serve; absent for a GET. */
  body?(token: RawToken): Body
}

/** 64 bytes: what is encrypted, authenticated and signed everywhere. */
export const message = Buffer.alloc(64, 'strongroom ')
const digest = hash('sha256', message, 'buffer')
export const batchItems = 100

const bytes = (text: unknown): Buffer => Buffer.from(text as string, 'base64')
const base64 = (buffer: Buffer): string => buffer.toString('base64')
let payload: Buffer | undefined

export const operations = {
  health: { serve: () => ({ initialized: true, sealed: false, standby: false }) },
  encrypt: {
    raw: (token) => token.encrypt(message),
    serve: (token, body) => ({ ciphertext: base64(token.encrypt(bytes(body.plaintext))) }),
    body: () => ({ plaintext: base64(message) }),
  },
  decrypt: {
    raw(token) {
      payload ??= token.encrypt(message)
      return token.decrypt(payload)
    },
    serve: (token, body) => ({ plaintext: base64(token.decrypt(bytes(body.ciphertext))) }),
    body: (token) => ({ ciphertext: base64(token.encrypt(message)) }),
  },
  hmac: {
    raw: (token) => token.hmac(message),
    serve: (token, body) => ({ hmac: base64(token.hmac(bytes(body.input))) }),
    body: () => ({ input: base64(message) }),
  },
  sign: {
    raw: (token) => token.sign(digest),
    // SoftHSM signs digests only: the hash belongs to the operation.
    serve: (token, body) => ({ signature: base64(token.sign(hash('sha256', bytes(body.input), 'buffer'))) }),
    body: () => ({ input: base64(message) }),
  },
  batch: {
    raw: (token) => token.encrypt(message),
    serve: (token, body) => ({
      results: (body.batch as Body[]).map((item) => ({ ciphertext: base64(token.encrypt(bytes(item.plaintext))) })),
    }),
    body: () => ({ batch: Array.from({ length: batchItems }, () => ({ plaintext: base64(message) })) }),
  },
} satisfies Record<string, Operation>

export type OperationName = keyof typeof operations
