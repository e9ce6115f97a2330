import { createHmac, timingSafeEqual } from 'node:crypto'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { LiveHandle } from '../../hsm/livehandle.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { MaybePromise } from '../../route.ts'
import type { Mac } from '../../store/sealed/seal.ts'
import type { Kek } from '../kek/keks.ts'
import type { KekPurpose, SystemKeyRow } from '../tables.ts'

/**
 * The three HMAC keys of the server itself: rows, token ids, audit. They are never one key, since `sys/audit-hash`
 * gives HMACs of chosen input and could otherwise forge rows.
 */
export type SystemPurpose = 'rows' | 'tokens' | 'audit'

/**
 * Only the keys for rows and credentials are under the system KEK: KWP binds no type, and a key that a caller imported
 * could otherwise replace them. The audit key's results are held in memory anyway.
 */
export const systemKeks: Record<SystemPurpose, KekPurpose> = { rows: 'system', tokens: 'system', audit: 'open' }

const bytes = 32
const hmac = { type: CKM.SHA256_HMAC }
const template: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: ['sign'] }
/**
 * The texts that check values are MACs of. Keys of token ids with the newer text MAC credentials in a domain of their
 * own, so that no credential has the check value as its MAC; older keys go on without one.
 */
const checkTexts: Record<SystemPurpose, readonly [Buffer, ...Buffer[]]> = (() => {
  const [former, current] = [Buffer.from('strongroom/check-value/1'), Buffer.from('strongroom/check-value/2')]
  return { rows: [former], tokens: [current, former], audit: [former] }
})()
const tokenDomain = Buffer.from('strongroom/token-id/1\0')

/** A new key, wrapped; nothing of it stays in the token. */
export async function makeSystemKey(
  hsm: Hsm,
  kek: Kek,
  purpose: SystemPurpose,
): Promise<{ kek: string; mechanism: number; blob: Buffer; checkValue: Buffer }> {
  const generated = await hsm.generateKey(CKM.GENERIC_SECRET_KEY_GEN, {
    ...template,
    valueLength: bytes,
    extractable: true,
  })
  try {
    const checkValue = await hsm.sign(generated, hmac, checkTexts[purpose][0], bytes)
    const blob = await kek.wrap(generated)
    return { kek: kek.row.id, mechanism: hsm.capabilities.kwp, blob, checkValue }
  } finally {
    await hsm.destroy(generated)
  }
}

/** The columns needed to use a system key. */
export type SystemFacts = Pick<SystemKeyRow, 'id' | 'purpose' | 'state' | 'blob' | 'checkValue'>

/** Where a system key's blob lies. */
export interface Location {
  readonly kek: Kek
  readonly blob: Buffer
}

/** HMAC-SHA-256 under one key that lives in the token as a session object; synchronous under the inline executor. */
export class SystemMac {
  readonly row: SystemFacts
  readonly #hsm: Hsm
  readonly #handle: LiveHandle
  #checkText: Buffer | undefined

  /**
   * @param locate says where the blob is now; called again whenever the key must be loaded, because its KEK may have
   * been rotated since. Its answer is not trusted: the key must show the check value of `row`.
   */
  constructor(hsm: Hsm, row: SystemFacts, locate: () => Promise<Location>) {
    this.row = row
    this.#hsm = hsm
    this.#handle = new LiveHandle(hsm, async () => this.#load(await locate()), true)
  }

  /** The text that the check value is the MAC of; known once the key was opened. */
  get checkText(): Buffer | undefined {
    return this.#checkText
  }

  mac(message: Uint8Array): MaybePromise<Buffer> {
    return this.#handle.use((key) => this.#hsm.sign(key, hmac, message, bytes))
  }

  /** Brings the key into the token. @throws Error when it is not the key its row describes */
  async open(): Promise<void> {
    await this.#handle.use(() => undefined)
  }

  close(): void {
    this.#handle.drop()
  }

  async #load({ kek, blob }: Location): Promise<Handle> {
    const key = await kek.unwrap(blob, template)
    for (const text of checkTexts[this.row.purpose as SystemPurpose]) {
      const value = await this.#hsm.sign(key, hmac, text, bytes)
      if (!value.equals(this.row.checkValue)) continue
      this.#checkText = text
      return key
    }
    await this.#hsm.destroy(key)
    throw new Error(`the ${this.row.purpose} key has another check value`)
  }
}

/** The MAC of credentials under their key, opened. */
export function tokenMac(key: SystemMac): (credential: Uint8Array) => MaybePromise<Buffer> {
  const [current] = checkTexts.tokens
  if (key.checkText !== current) return (credential) => key.mac(credential)
  return (credential) => key.mac(Buffer.concat([tokenDomain, credential]))
}

/** The MAC of sealed rows, by the one key that seals them. */
export class RowMac implements Mac {
  readonly keyId: string
  readonly format = 1
  readonly #key: SystemMac

  constructor(key: SystemMac) {
    this.keyId = key.row.id
    this.#key = key
  }

  compute(message: Buffer): MaybePromise<Buffer> {
    return this.#key.mac(message)
  }

  knows(keyId: string): boolean {
    return keyId === this.keyId
  }

  verify(keyId: string, message: Buffer, mac: Buffer): MaybePromise<boolean> {
    if (!this.knows(keyId)) throw new Error(`no row-MAC key ${keyId}`)
    const expected = this.#key.mac(message)
    return expected instanceof Promise ? expected.then((value) => same(value, mac)) : same(expected, mac)
  }
}

const same = (expected: Buffer, mac: Buffer): boolean =>
  mac.length === expected.length && timingSafeEqual(expected, mac)

/**
 * Keys derived with the audit key at start, which then leaves the token. Every line needs them: they stay in memory.
 */
export interface AuditKeys {
  /** The HMAC key of one audit device. */
  device(uuid: string): Buffer
  /** Makes and checks the tag that our credentials carry, so that guesses cost neither database nor token. */
  readonly guess: Buffer
  /** An HMAC of the accessor of a token, for the history of keys. */
  hashAccessor(accessor: string): string
}

/** The MACs of the server itself, opened. */
export interface SystemMacs {
  readonly rowMac: RowMac
  /** HMAC under the key of token ids; 32 bytes. */
  tokenMac(message: Uint8Array): MaybePromise<Buffer>
  readonly audit: AuditKeys
}

/**
 * Derives the keys, each as the MAC of a text of its own (32 bytes), and closes the audit key.
 * @throws ApiError 503 while the token is lost
 */
export async function deriveAuditKeys(audit: SystemMac): Promise<AuditKeys> {
  const devices = await audit.mac(Buffer.from('strongroom/audit-devices/1'))
  const guess = await audit.mac(Buffer.from('strongroom/guess-filter/1'))
  const accessors = await audit.mac(Buffer.from('strongroom/accessors/1'))
  audit.close()
  return {
    guess,
    device: (uuid) => createHmac('sha256', devices).update(uuid).digest(),
    hashAccessor: (accessor) => `hmac-sha256:${createHmac('sha256', accessors).update(accessor).digest('hex')}`,
  }
}
