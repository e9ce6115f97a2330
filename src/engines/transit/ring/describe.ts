import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { data, mapOf, timestamp, titled } from '../../../answers.ts'
import { pointIn } from '../../../crypto/edwards.ts'
import { writePem } from '../../../crypto/pem.ts'
import { absent, unlessUnavailable } from '../../../errors.ts'
import type { Abilities, Algorithm } from '../../../keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { ManagedKeys } from '../../../keys/managed/managedkeys.ts'
import { describe as describeMaterial, materialAnswer } from '../../../keys/material.ts'
import type { MaterialRow } from '../../../keys/tables.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { Data, MaybePromise, Mount } from '../../../route.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { managedType } from './managedtype.ts'
import { type Inventory, partOf, withoutDamaged } from './readring.ts'
import type { Version } from './ring.ts'
import type { Rings } from './rings.ts'

const abilitiesAnswer = {
  supports_decryption: Type.Boolean(),
  supports_derivation: Type.Boolean(),
  supports_encryption: Type.Boolean(),
  supports_signing: Type.Boolean(),
}

const copied = Type.Object({ time: timestamp, version: Type.Integer() })

/** A version of a secret key is shown as its creation time, in seconds. */
const versionAnswer = Type.Union([
  Type.Integer(),
  Type.Object({
    name: Type.String(),
    creation_time: timestamp,
    public_key: Type.String(),
    certificate_chain: Type.String(),
  }),
])

const custodyAnswer = titled('TransitCustody', {
  ...materialAnswer,
  managed_key: Type.Optional(Type.String()),
  hmac: Type.Optional(Type.Object(materialAnswer)),
  prk: Type.Optional(Type.Object(materialAnswer)),
  derived_keys: Type.Optional(Type.String()),
})

/** The members of the key object. */
export const keyAnswer = data(
  titled('TransitKey', {
    allow_plaintext_backup: Type.Boolean(),
    allow_rotation: Type.Boolean(),
    auto_rotate_period: Type.Integer(),
    backup_info: Type.Optional(copied),
    convergent_encryption: Type.Boolean(),
    convergent_encryption_version: Type.Optional(Type.Integer()),
    custody: mapOf(custodyAnswer),
    deletion_allowed: Type.Boolean(),
    derived: Type.Boolean(),
    exportable: Type.Boolean(),
    hmac_in_hsm_only: Type.Boolean(),
    imported_key: Type.Boolean(),
    imported_key_allow_rotation: Type.Optional(Type.Boolean()),
    kdf: Type.Optional(Type.String()),
    kdf_mode: Type.Optional(Type.String()),
    key_size: Type.Integer(),
    keys: mapOf(versionAnswer),
    latest_version: Type.Integer(),
    managed_key_id: Type.String(),
    managed_key_name: Type.String(),
    min_available_version: Type.Integer(),
    min_decryption_version: Type.Integer(),
    min_encryption_version: Type.Integer(),
    name: Type.String(),
    restore_info: Type.Optional(copied),
    soft_deleted: Type.Boolean(),
    ...abilitiesAnswer,
    type: Type.String(),
  }),
)

/**
 * The key object of reads and of every answer that changes a key. `keys` shows the usable versions; `custody` shows for
 * each the place of its key, the attributes that the token reported when it was made, and the same of its HMAC secret.
 * The managed key is that of the latest version; its name is empty once it was deleted.
 * @throws ApiError 404 when the key does not exist
 */
export function describeKey(
  context: { readonly rings: Rings; readonly managed: ManagedKeys },
  mount: Mount,
  name: string,
): MaybePromise<Data> {
  return after(context.rings.inventory(mount, name), (found) => {
    if (found === undefined) throw absent()
    return describeWhole(context, found)
  })
}

/**
 * The key object of an inventory that a change returned. Nothing fails after the COMMIT: versions that lack a part are
 * left out, and the name and the abilities of a managed key where they cannot be read now.
 */
export function describeInventory(
  context: { readonly managed: ManagedKeys },
  inventory: Inventory,
): MaybePromise<Data> {
  try {
    return describeChanged(context, inventory)
  } catch (error) {
    if (!(error instanceof DamagedRow)) throw error
    return describeChanged(context, withoutDamaged(inventory))
  }
}

function describeChanged(context: { readonly managed: ManagedKeys }, inventory: Inventory): MaybePromise<Data> {
  const whole = describeWhole(context, inventory)
  if (!(whole instanceof Promise)) return whole
  return whole.catch((error: unknown) => {
    unlessUnavailable(error)
    return { ...describeOwn(inventory), managed_key_id: managedIdOf(inventory) ?? '' }
  })
}

const managedIdOf = ({ ring: { key, versions } }: Inventory): string | null | undefined =>
  versions.get(key.latestVersion)?.managedKey

function describeOwn(inventory: Inventory): Data {
  const known = descriptions.get(inventory) ?? describe(inventory)
  descriptions.set(inventory, known)
  return known
}

function describeWhole({ managed }: { readonly managed: ManagedKeys }, inventory: Inventory): MaybePromise<Data> {
  const known = describeOwn(inventory)
  const id = managedIdOf(inventory)
  if (!id) return known
  return after(managed.nameOf(id), (managed_key_name = '') =>
    after(managed.abilitiesOf(id), (abilities) => ({
      ...known,
      managed_key_name,
      managed_key_id: id,
      ...describeAbilities(abilities),
    })),
  )
}

/** Abilities of a managed key, until its mechanism is known. */
const unknownAbilities: Abilities = { encrypt: false, sign: false, derive: false }

/** An inventory never changes, and the description of a key of many versions is costly. */
const descriptions = new WeakMap<Inventory, Data>()

function describe(found: Inventory): Data {
  const { key, versions } = found.ring
  const abilities = key.type === managedType ? unknownAbilities : algorithmOf(key.type).abilities
  const keys: Record<string, unknown> = {}
  const custody: Record<string, unknown> = {}
  for (const one of versions.values()) {
    const { version, material, hmacMaterial, prkMaterial, managedKey } = one
    if (version < key.minDecryptionVersion) continue
    const part = partOf(found, material)
    const hmac = hmacMaterial === null ? {} : { hmac: describeMaterial(partOf(found, hmacMaterial)) }
    // A key derived from a context is in the server's memory while it is used; its root key never is.
    const prk =
      prkMaterial === null
        ? {}
        : { prk: describeMaterial(partOf(found, prkMaterial)), derived_keys: 'in memory when used' }
    keys[version] = entryOf(algorithmOf(part.algorithm), part, one, key.derived)
    const managed = managedKey === null ? {} : { managed_key: managedKey }
    custody[version] = { ...describeMaterial(part), ...managed, ...hmac, ...prk }
  }
  // In wire order, so that the envelope need not sort.
  return {
    allow_plaintext_backup: key.allowPlaintextBackup,
    allow_rotation: key.allowRotation,
    auto_rotate_period: key.autoRotateSeconds,
    ...(key.backupInfo ? { backup_info: key.backupInfo } : {}),
    convergent_encryption: key.convergent,
    ...(key.convergent ? { convergent_encryption_version: key.convergentVersion } : {}),
    custody,
    deletion_allowed: key.deletionAllowed,
    derived: key.derived,
    exportable: key.exportable,
    hmac_in_hsm_only: key.hmacInHsmOnly === true,
    imported_key: key.imported,
    ...(key.imported ? { imported_key_allow_rotation: key.allowRotation } : {}),
    ...(key.derived ? { kdf: key.kdf } : {}),
    ...(key.derived && key.kdf === ('hmac-sha256-counter' satisfies Kdf) ? { kdf_mode: key.kdf } : {}),
    key_size: key.keySize,
    keys,
    latest_version: key.latestVersion,
    managed_key_id: '',
    managed_key_name: '',
    min_available_version: key.minAvailableVersion,
    min_decryption_version: key.minDecryptionVersion,
    min_encryption_version: key.minEncryptionVersion,
    name: key.name,
    ...(key.restoreInfo ? { restore_info: key.restoreInfo } : {}),
    soft_deleted: key.softDeleted,
    ...describeAbilities(abilities),
    type: key.type,
  }
}

const describeAbilities = ({ encrypt, sign, derive }: Abilities): Data => ({
  supports_decryption: encrypt,
  supports_derivation: derive,
  supports_encryption: encrypt,
  supports_signing: sign,
})

/** The creation time in seconds for secret keys; name, time and public key for pairs. */
function entryOf(
  algorithm: Algorithm,
  part: MaterialRow,
  { createdAt, certificateChain }: Version,
  derived: boolean,
): unknown {
  if (algorithm.entry === undefined) return Math.floor(createdAt / 1000)
  return {
    name: algorithm.entry,
    creation_time: new Date(createdAt).toISOString(),
    // The root of derived keys does not sign: routes/keys/key.ts fills in the public key of a context.
    public_key: derived ? '' : publicKeyText(algorithm, part),
    certificate_chain: certificateChain ?? '',
  }
}

function publicKeyText(algorithm: Algorithm, { publicKey: spki, id }: MaterialRow): string {
  if (spki === null) throw new Error(`material ${id} has no public key`)
  if (algorithm.exports['public-key'] === 'point') return pointIn(spki).toString('base64')
  return `${writePem('PUBLIC KEY', spki)}\n`
}
