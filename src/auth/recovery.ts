import { hash, randomUUID, timingSafeEqual } from 'node:crypto'
import { randomSecret, randomText } from '../crypto/randomtext.ts'
import { badRequest } from '../errors.ts'
import type { CoherentCache } from '../store/coherence/cache.ts'
import type { Transaction } from '../store/reader.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import { column, defineTable, type Row } from '../store/table.ts'
import { insertToken } from './count.ts'
import { credentialLength } from './credential.ts'
import { prepareRootToken, type RootTokenDeps } from './roottoken.ts'

/** One row while root tokens may be generated, otherwise none. A row of an earlier epoch is void, like tokens. */
export const recoveryTable = defineTable(
  'recovery',
  {
    secretHash: column.bytes(),
    nonce: column.text().nullable(),
    /** XORed with a MAC of the nonce. */
    otp: column.bytes().nullable(),
    startedAt: column.integer().nullable(),
  },
  { sealed: true },
)
type RecoveryRow = Row<typeof recoveryTable>

const attemptMilliseconds = 600_000

/** The state of sys/generate-root: whether a root token may be generated, and the nonce of the attempt under way. */
export interface Generation {
  readonly enabled: boolean
  readonly nonce: string | undefined
}

/**
 * Root tokens for the holder of the recovery secret, in two steps as Vault's clients make them: an attempt with a
 * one-time pad (OTP), then the secret, in return for which the token comes XORed with the pad.
 */
export class RootGeneration {
  readonly #deps: RootTokenDeps
  readonly #cluster: string
  readonly #epoch: number
  readonly #table: SealedAccess<typeof recoveryTable>
  readonly #cache: CoherentCache<{ readonly row: RecoveryRow | undefined }>

  constructor({ cluster, epoch, ...deps }: RootTokenDeps & { readonly cluster: string; readonly epoch: number }) {
    this.#deps = deps
    this.#cluster = cluster
    this.#epoch = epoch
    this.#table = deps.database.table(recoveryTable)
    this.#cache = deps.database.cache({
      table: recoveryTable.name,
      limit: 1,
      load: async (q, id) => ({ row: await this.#table.get(q, id) }),
    })
  }

  /** Makes a new recovery secret, replacing an older one. It is not stored: the caller must hand it out. */
  async enable(): Promise<string> {
    const secret = randomSecret()
    await this.#change(async (tx, row) => {
      if (row) await this.#table.remove(tx, row)
      await this.#table.insert(tx, { id: this.#cluster, secretHash: digest(secret) })
    })
    return secret
  }

  /** From now on only the command line generates root tokens. */
  disable(): Promise<void> {
    return this.#change(async (tx, row) => row && this.#table.remove(tx, row))
  }

  async state(): Promise<Generation> {
    const row = this.#valid((await this.#cache.get(this.#cluster))?.row)
    return { enabled: row !== undefined, nonce: row && this.#nonceOf(row) }
  }

  /**
   * Begins an attempt, which lives ten minutes.
   * @param otp of `credentialLength` bytes; one is made when it is absent
   * @throws ApiError 400 for another length, or while an attempt is under way
   */
  async begin(otp = randomText(credentialLength)): Promise<{ nonce: string; otp: string }> {
    const pad = Buffer.from(otp)
    if (pad.length !== credentialLength)
      throw badRequest(`OTP string is wrong length: it must have ${credentialLength} bytes`)
    const nonce = randomUUID()
    const masked = xor(pad, await this.#mask(nonce))
    await this.#change(async (tx, found) => {
      const row = enabled(this.#valid(found))
      if (this.#nonceOf(row) !== undefined) throw badRequest('root generation already in progress')
      await this.#table.update(tx, row, { nonce, otp: masked, startedAt: this.#deps.clock.wall() })
    })
    return { nonce, otp }
  }

  cancel(): Promise<void> {
    return this.#change(async (tx, row) => row && row.nonce !== null && this.#table.update(tx, row, none))
  }

  /**
   * Makes a root token and ends the attempt.
   * @returns the token XORed with the attempt's OTP, in base64 without padding
   * @throws ApiError 400 for a wrong nonce or secret
   */
  async complete(secret: string, nonce: string, ttlSeconds: number): Promise<string> {
    const { database } = this.#deps
    const { credential, row: token } = await prepareRootToken(this.#deps, ttlSeconds)
    const mask = await this.#mask(nonce)
    let pad: Buffer = Buffer.alloc(0)
    await this.#change(async (tx, found) => {
      const row = enabled(this.#valid(found))
      const current = this.#nonceOf(row)
      if (current === undefined || row.otp === null) throw badRequest('no root generation in progress')
      if (current !== nonce)
        throw badRequest(`incorrect nonce supplied; nonce for this root generation operation is ${current}`)
      if (!timingSafeEqual(row.secretHash, digest(secret))) throw badRequest('root generation failed: invalid key')
      pad = xor(row.otp, mask)
      await this.#table.update(tx, row, none)
      await insertToken(database, tx, token)
    })
    return xor(Buffer.from(credential), pad).toString('base64').replace(/=+$/, '')
  }

  #change(work: (tx: Transaction, row: RecoveryRow | undefined) => Promise<unknown>): Promise<void> {
    return this.#deps.database.transaction(async (tx) => {
      await work(tx, await this.#table.get(tx, this.#cluster))
      tx.touch(recoveryTable.name, this.#cluster)
    })
  }

  #valid(row: RecoveryRow | undefined): RecoveryRow | undefined {
    return row !== undefined && row.epoch >= this.#epoch ? row : undefined
  }

  #nonceOf({ nonce, startedAt }: RecoveryRow): string | undefined {
    const age = this.#deps.clock.wall() - (startedAt ?? 0)
    return nonce === null || age > attemptMilliseconds ? undefined : nonce
  }

  /**
   * Computed with the key of token ids; credentials have no blanks, so none of them has this MAC. The database never
   * holds the pad.
   */
  async #mask(nonce: string): Promise<Buffer> {
    const { tokenMac } = this.#deps.keys
    const parts = [1, 2].map(async (part) => tokenMac(Buffer.from(`generate-root ${nonce} ${part}`)))
    return Buffer.concat(await Promise.all(parts))
  }
}

const none = { nonce: null, otp: null, startedAt: null } as const

const digest = (secret: string): Buffer => hash('sha256', secret, 'buffer')
const xor = (text: Buffer, pad: Buffer): Buffer => Buffer.from(text.map((byte, at) => byte ^ (pad[at] ?? 0)))

function enabled(row: RecoveryRow | undefined): RecoveryRow {
  if (row !== undefined) return row
  throw badRequest('generate-root is off; strongroom recovery-secret turns it on and prints the secret it needs')
}
