import { CKK } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Kek } from '../kek/keks.ts'

/** The secret is under a KEK whose blobs never leave the token. */
export class ClosedSecret extends Error {}

const readable: KeyTemplate = {
  class: 'secret',
  keyType: CKK.GENERIC_SECRET,
  sensitive: false,
  extractable: true,
  usages: [],
}

/**
 * Opens a secret for one use and wipes it when the use is over: while that lasts, the key of an enveloped row is in the
 * server's memory. Only blobs under the open and export KEKs are ever opened. Zeros may follow the secret (padding.ts):
 * the caller knows its length.
 */
export async function withSecret<T>(
  hsm: Hsm,
  kek: Kek,
  blob: Uint8Array,
  use: (secret: Buffer) => T | Promise<T>,
): Promise<T> {
  if (kek.row.purpose !== 'open' && kek.row.purpose !== 'export') {
    throw new ClosedSecret(`a secret under the ${kek.row.purpose} KEK is never opened`)
  }
  const handle = await kek.unwrap(blob, readable)
  let secret: Buffer | undefined
  try {
    secret = (await hsm.attributes(handle, ['value'])).value
    if (secret === undefined) throw new Error('the token does not show a secret that was unwrapped as readable')
    return await use(secret)
  } finally {
    secret?.fill(0)
    await hsm.destroy(handle)
  }
}

/** Puts a secret into the token and wraps it there; the caller wipes its own copy. */
export async function wrapSecret(hsm: Hsm, kek: Kek, secret: Uint8Array): Promise<Buffer> {
  const handle = await hsm.create({
    class: 'secret',
    keyType: CKK.GENERIC_SECRET,
    value: secret,
    extractable: true,
    usages: [],
  })
  try {
    return await kek.wrap(handle)
  } finally {
    await hsm.destroy(handle)
  }
}
