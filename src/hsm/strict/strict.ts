import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { PinRefused } from '../faults.ts'
import type { Hsm } from '../hsm.ts'
import { strictHelper } from './helper.ts'

export interface StrictKek {
  readonly label?: string
  /** CKA_ID, 1 to 64 bytes. */
  readonly id?: Uint8Array
  /** 32 bytes, the XOR of the custodians' components; if omitted, the key is generated in the token. */
  readonly value?: Uint8Array | undefined
}

const refusals: Record<number, string> = {
  5: 'no such token',
  6: 'the token does not enforce CKA_UNWRAP_TEMPLATE, so it cannot be used in strict mode',
  7: 'the token refused to make a KEK with CKA_UNWRAP_TEMPLATE',
}

/**
 * Makes an AES-256 KEK as a token object that only wraps and unwraps, and cannot be changed or copied; the token itself
 * enforces that keys unwrapped by it are sensitive, not extractable and unmodifiable, and neither derive nor unwrap. A
 * C program makes it, since pkcs11js cannot pass CKA_UNWRAP_TEMPLATE; PIN and value go through its standard input.
 * @throws PinRefused; Error when the token does not support such a template or does not enforce it (no key is left
 * behind then)
 */
export async function makeStrictKek(hsm: Hsm, kek: StrictKek): Promise<void> {
  const { library, libraryParameters, serial, pin } = hsm.credentials
  const id = Buffer.from(kek.id ?? []).toString('hex')
  const words = [library, serial, kek.label ?? '', id, String(hsm.capabilities.kwp)]
  if (libraryParameters !== undefined) words.push(libraryParameters)
  const child = spawn(strictHelper(), words, { stdio: ['pipe', 'ignore', 'pipe'] })
  child.stdin.on('error', () => {}) // It may exit without reading; its exit status says why.
  child.stdin.end(`${pin}\n${kek.value === undefined ? '' : Buffer.from(kek.value).toString('hex')}\n`)
  const [said, [status]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (status === 0) return
  if (status === 3) throw new PinRefused('incorrect', 'wrong PIN')
  if (status === 4) throw new PinRefused('locked', 'the token has locked its PIN, or would at one more wrong one')
  throw new Error(`${refusals[status] ?? 'the strict KEK helper failed'}${said ? ` (${said.trim()})` : ''}`)
}
