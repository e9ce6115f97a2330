import { KeyObject, randomUUIDv7 } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { badRequest, unavailable } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { MaybePromise } from '../../route.ts'
import type { CoherentCache } from '../../store/coherence/cache.ts'
import type { Database } from '../../store/database.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { algorithms, pairAlgorithm } from '../algorithms.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { MadeAhead } from '../making/ahead.ts'
import type { IncomingKey } from '../making/incomingkey.ts'
import { type Made, makePair, makeSecret, makeSeed, opened, plaintextHistory, sizeOf } from '../making/making.ts'
import { type Exposure, exposureOf } from '../making/padding.ts'
import { type Circumstances, chooseResidence } from '../making/residence.ts'
import type { Residents } from '../making/residents.ts'
import { Material } from '../material.ts'
import { encodePublicKey, fingerprintOf } from '../publickey.ts'
import { type MaterialRow, materialsTable, materialTraces, type Part, type Residence, usageTable } from '../tables.ts'
import type { Approval } from '../use/approval.ts'
import type { Kdf } from '../use/derivation.ts'
import type { Draft, Owner, Specification } from './draft.ts'
import { extract } from './extraction.ts'

export interface MaterialsOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly keks: Keks
  readonly residents: Residents
  readonly clock: Clock
  readonly strict: boolean
  readonly approval: Approval
  readonly cacheLimit: number
  /** A material is gone: its live object in the token can be dropped. */
  forget(id: string): void
}

const pageRows = 1000

/** The sealed table of all key parts, and the only way to make one. */
export class Materials implements Disposable {
  readonly #options: MaterialsOptions
  readonly #cache: CoherentCache<Material>
  readonly #ahead: MadeAhead

  constructor(options: MaterialsOptions) {
    this.#options = options
    this.#ahead = new MadeAhead(options.clock)
    this.#cache = options.database.cache({
      table: materialsTable.name,
      limit: options.cacheLimit,
      load: async (q, id) => {
        const material = await this.read(q, id)
        if (material === undefined) options.forget(id)
        return material
      },
    })
  }

  /**
   * Makes a key in the token, before any transaction: slow, and nothing stays in the token (or an intent row says so).
   * @throws ApiError 400 naming the rule or the missing mechanism
   */
  async prepare(specification: Specification): Promise<Draft> {
    const { hsm, clock, strict, approval } = this.#options
    const { exportable, part, derived, given, residence: wanted, createdBy, hmacInHsmOnly } = specification
    const find = part === 'authority' ? pairAlgorithm : (name: string) => algorithms.get(name)
    const algorithm = find(specification.algorithm)
    if (algorithm === undefined) throw badRequest(`unknown key type ${specification.algorithm}`)
    approval.checkNew(algorithm)
    const sizeBytes = sizeOf(algorithm, specification.sizeBytes)
    const { capabilities } = hsm
    const exposure = algorithm.mac && exposed(exposureOf(capabilities, sizeBytes), given)
    const id = randomUUIDv7()
    const { residence, kek, made, intent } =
      given instanceof KeyObject
        ? publicOnly(given)
        : await this.#make(
            algorithm,
            { exportable, strict, exposure, hmacInHsmOnly, derived, wanted, capabilities },
            id,
            { sizeBytes, given, part },
          )
    return {
      intent: intent?.id,
      fields: {
        id,
        part,
        algorithm: algorithm.name,
        sizeBytes,
        residence,
        kek: kek?.row.id ?? null,
        mechanism: kek ? hsm.capabilities.kwp : null,
        blob: made.blob ?? null,
        ckaId: intent?.ckaId ?? null,
        tokenSerial: intent ? hsm.token.serial : null,
        publicKey: made.spki ?? null,
        fingerprint: made.spki ? fingerprintOf(made.spki) : null,
        exportable,
        ...made.history,
        origin: given === undefined ? 'generated' : given instanceof KeyObject ? 'imported' : given.origin,
        createdAt: clock.wall(),
        createdBy,
        state: 'active',
      },
    }
  }

  /**
   * The HMAC key that contexts are fed to, extracted from a root key; to be stored with the same owner as its root.
   * @param root made or imported, not stored yet; an Ed25519 key must be enveloped (`derived` of prepare)
   * @throws ApiError 400 naming the mechanism that the token lacks
   */
  extract(root: Draft, kdf: Kdf): Promise<Draft> {
    return extract(this.#options, root, kdf)
  }

  async #make(
    algorithm: Algorithm,
    circumstances: Circumstances,
    id: string,
    { sizeBytes, given, part }: { sizeBytes: number; given: IncomingKey | undefined; part: Part },
  ): Promise<MadeKey> {
    const { hsm, keks, residents } = this.#options
    const { residence, kek: purpose } = chooseResidence(algorithm, circumstances)
    if (purpose === undefined) {
      return { residence, kek: undefined, ...(await residents.make(algorithm, { material: id, part, given })) }
    }
    const kek = await keks.active(purpose)
    const generate = () => make(hsm, algorithm, { residence, sizeBytes, part }, kek)
    const sort = `${algorithm.name} ${part} ${sizeBytes} ${residence} ${kek.row.id}`
    const made = given
      ? await given.wrap(hsm, kek, residence)
      : await (isMadeAhead(algorithm, part) ? this.#ahead.take(sort, generate) : generate())
    return { residence, kek, made, intent: undefined }
  }

  /** Forgets the keys made ahead. */
  [Symbol.dispose](): void {
    this.#ahead[Symbol.dispose]()
  }

  /** Prefetches, at the beginning of a transaction, the state of KEKs that `insert` needs for these drafts. */
  expect(tx: Transaction, drafts: readonly (Draft | undefined)[]): void {
    for (const draft of drafts) {
      const kek = draft?.fields.kek
      // `insert` meets the same failure.
      if (kek != null) this.#options.keks.mayStore(tx, kek).catch(() => undefined)
    }
  }

  /**
   * Stores a draft, inside the transaction that stores the key it belongs to.
   * @throws ApiError 503 when the draft's KEK was destroyed meanwhile: prepare again
   */
  async insert(tx: Transaction, draft: Draft, owner: Owner): Promise<MaterialRow> {
    const { database, residents, keks } = this.#options
    const { fields, intent } = draft
    if (fields.kek != null && !(await keks.mayStore(tx, fields.kek))) {
      throw unavailable('the key was made under a KEK that is gone')
    }
    if (intent !== undefined) await residents.settle(tx, intent)
    const { mount, key, version } = owner
    const row = await database.table(materialsTable).insert(tx, { ...fields, owner: key, version, mount })
    if (algorithms.get(row.algorithm)?.aead) {
      await database.table(usageTable).insert(tx, { material: row.id, used: 0 })
    }
    return row
  }

  /** Destroys a key that was made in the token and not stored; a stored one stays. Never rejects. */
  async abandon({ intent }: Draft): Promise<void> {
    if (intent !== undefined) await this.#options.residents.abandon(intent)
  }

  /**
   * Removes a key's rows in this table: all, one version or one part, or every version below a floor. Blobs go with
   * their rows; token objects are destroyed by the next sweep.
   * @returns the removed ids
   */
  async removeOwned(
    tx: Transaction,
    owner: { key: string; version?: number; below?: number; part?: Part },
  ): Promise<readonly string[]> {
    const { database, residents } = this.#options
    const materials = database.table(materialsTable)
    const where = owner.version === undefined ? { owner: owner.key } : { owner: owner.key, version: owner.version }
    const gone: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await materials.list(tx, where, { by: 'id', limit: 200, ...(after === undefined ? {} : { after }) })
      after = page.at(-1)?.id
      for (const row of page) {
        if (owner.below !== undefined && row.version >= owner.below) continue
        if (owner.part !== undefined && row.part !== owner.part) continue
        await materials.remove(tx, row)
        await database.table(usageTable).discard(tx, { material: row.id })
        // A managed key is a token object too, and not ours to destroy: its row has no CKA_ID.
        if (row.residence === 'token' && row.ckaId !== null) await residents.condemn(tx, row)
        tx.touch(materialsTable.name, row.id)
        // If the transaction fails after all, the next use loads it again.
        this.#options.forget(row.id)
        gone.push(row.id)
      }
      if (page.length < 200) return gone
    }
  }

  /**
   * Removes some of a removed mount's rows in this table. No request reaches them any more, so no cache is told. Edited
   * rows are removed unread; the token objects of the others are destroyed by the next sweep.
   * @param where one key of the mount, or all that is left of it
   * @returns how many rows there were, at most `limit`
   */
  async removeSome(tx: Transaction, where: { owner: string } | { mount: string }, limit: number): Promise<number> {
    const { database, residents, forget } = this.#options
    const materials = database.table(materialsTable)
    const found = await database.unverified(materialTraces).list(tx, where, { by: 'id', limit })
    const ids = found.map(({ id }) => id)
    for (const row of await materials.sound(tx, ids)) {
      if (row.residence === 'token' && row.ckaId !== null) await residents.condemn(tx, row)
    }
    await materials.removeAll(tx, ids)
    for (const id of ids) {
      await database.table(usageTable).discard(tx, { material: id })
      forget(id)
    }
    return ids.length
  }

  /** The material if it is cached and current. */
  peek(id: string): Material | undefined {
    return this.#cache.peek(id)
  }

  /**
   * The material; synchronous from the cache. @throws NoMaterial when there is none: the row that names it is damaged
   */
  fetch(id: string): MaybePromise<Material> {
    const material = this.#cache.get(id)
    return material instanceof Promise ? material.then((value) => expect(value, id)) : expect(material, id)
  }

  /** One material as the database has it now, verified. */
  async read(q: Reader, id: string): Promise<Material | undefined> {
    const row = await this.#options.database.table(materialsTable).get(q, id)
    return row && new Material(row)
  }

  /** Whether a mount has any, its wrapping key included; nothing is verified. @param mount uuid */
  any(mount: string): Promise<boolean> {
    const { database } = this.#options
    return database.read((q) => database.table(materialsTable).exists(q, { mount }))
  }

  /** All parts of all versions of a key, verified. */
  async listAll(q: Reader, key: string): Promise<MaterialRow[]> {
    const materials = this.#options.database.table(materialsTable)
    const rows: MaterialRow[] = []
    for (let full = true; full; ) {
      const last = rows.at(-1)
      const after = last === undefined ? {} : { after: [last.version, last.part] as const }
      const page = await materials.list(q, { owner: key }, { by: ['version', 'part'], limit: pageRows, ...after })
      rows.push(...page)
      full = page.length === pageRows
    }
    return rows
  }

  /**
   * One part of each of a key's versions in their order, verified; the cursor is a version. For key read and export.
   */
  list(
    q: Reader,
    where: { key: string; part: Part },
    page: { after?: number; limit: number; descending?: boolean },
  ): Promise<MaterialRow[]> {
    const { key: owner, part } = where
    return this.#options.database.table(materialsTable).list(q, { owner, part }, { by: 'version', ...page })
  }
}

/** The row that names the material is damaged, or was deleted since it was read. */
export class NoMaterial extends Error {}

function expect(material: Material | undefined, id: string): Material {
  if (material === undefined) throw new NoMaterial(`there is no material ${id}`)
  return material
}

/** Keys of certificate authorities are few, and pairs that take long are better made by nobody than in vain. */
const isMadeAhead = (algorithm: Algorithm, part: Part): boolean =>
  (part === 'key' || part === 'hmac') && !(algorithm.class === 'private' && algorithm.slow)

/** A secret from outside is padded where it is in memory anyway, so how new ones are made does not matter. */
const exposed = (exposure: Exposure | undefined, given: Specification['given']): Exposure | undefined =>
  exposure?.when === 'made' && given !== undefined ? undefined : exposure

/** A key that was made, and where it is. */
interface MadeKey {
  readonly residence: Residence
  readonly kek: Kek | undefined
  readonly made: Made
  readonly intent: { readonly id: string; readonly ckaId: Buffer } | undefined
}

const publicOnly = (publicKey: KeyObject): MadeKey => ({
  residence: 'public',
  kek: undefined,
  made: { blob: undefined, spki: encodePublicKey(publicKey), history: plaintextHistory },
  intent: undefined,
})

async function make(
  hsm: Hsm,
  algorithm: Algorithm,
  { residence, sizeBytes, part }: { residence: Residence; sizeBytes: number; part: Part },
  kek: Kek,
): Promise<Made> {
  if (algorithm.class === 'secret') {
    const made = await makeSecret(hsm, algorithm, sizeBytes, kek)
    // Loading such a secret already exposes it in memory.
    return algorithm.mac && residence === 'enveloped' ? { ...made, history: opened(made.history) } : made
  }
  return residence === 'enveloped' ? makeSeed(hsm, algorithm, kek) : makePair(hsm, algorithm, kek, part)
}
