import { after } from '../../../after.ts'
import { pointOf } from '../../../crypto/edwards.ts'
import { absent } from '../../../errors.ts'
import type { Algorithm } from '../../../keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { ManagedKeys } from '../../../keys/managed/managedkeys.ts'
import { describe as describeMaterial, Material } from '../../../keys/material.ts'
import type { MaterialRow } from '../../../keys/tables.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import type { Data, MaybePromise, Mount } from '../../../route.ts'
import { managedAbilities, managedType } from './managedtype.ts'
import { type Inventory, partOf } from './readring.ts'
import type { Version } from './ring.ts'
import type { Rings } from './rings.ts'

/**
 * The key object of reads and of every answer that changes a key. `keys` shows the versions that may still be used;
 * `custody` shows for each where its key is, the attributes that the token reported when it was made, and the same of
 * its HMAC secret. The managed key is that of the latest version; its name is empty once it was deleted.
 * @throws ApiError 404 when there is no such key
 */
export function describeKey(
  context: { readonly rings: Rings; readonly managed: ManagedKeys },
  mount: Mount,
  name: string,
): MaybePromise<Data> {
  return after(context.rings.inventory(mount, name), (found) => {
    if (found === undefined) throw absent()
    return describeInventory(context, found)
  })
}

/** The key object of a key as one change left it. */
export function describeInventory(
  { managed }: { readonly managed: ManagedKeys },
  inventory: Inventory,
): MaybePromise<Data> {
  const known = descriptions.get(inventory) ?? describe(inventory)
  descriptions.set(inventory, known)
  const { key, versions } = inventory.ring
  const id = versions.get(key.latestVersion)?.managedKey
  if (!id) return known
  return after(managed.nameOf(id), (managed_key_name = '') => ({ ...known, managed_key_name, managed_key_id: id }))
}

/** An inventory never changes, and the description of a key of many versions is costly. */
const descriptions = new WeakMap<Inventory, Data>()

function describe(found: Inventory): Data {
  const { key, versions } = found.ring
  const abilities = key.type === managedType ? managedAbilities : algorithmOf(key.type).abilities
  const keys: Record<string, unknown> = {}
  const custody: Record<string, unknown> = {}
  for (const one of versions.values()) {
    const { version, material, hmacMaterial, prkMaterial, managedKey } = one
    if (version < key.minDecryptionVersion) continue
    const part = partOf(found, material)
    const hmac = hmacMaterial === null ? {} : { hmac: describeMaterial(partOf(found, hmacMaterial)) }
    // A key derived from a context is in the server's memory while it is used; the key it is derived from never is.
    const prk =
      prkMaterial === null
        ? {}
        : { prk: describeMaterial(partOf(found, prkMaterial)), derived_keys: 'in memory when used' }
    keys[version] = entryOf(algorithmOf(part.algorithm), part, one, key.derived)
    const managed = managedKey === null ? {} : { managed_key: managedKey }
    custody[version] = { ...describeMaterial(part), ...managed, ...hmac, ...prk }
  }
  // In the order of the wire, so that the envelope need not sort.
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
    supports_decryption: abilities.encrypt,
    supports_derivation: abilities.derive,
    supports_encryption: abilities.encrypt,
    supports_signing: abilities.sign,
    type: key.type,
  }
}

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
    // The root of derived keys signs nothing: routes/keys/key.ts fills in the public key of a context.
    public_key: derived ? '' : publicKeyText(algorithm, new Material(part)),
    certificate_chain: certificateChain ?? '',
  }
}

function publicKeyText(algorithm: Algorithm, { publicKey }: Material): string {
  if (algorithm.exports['public-key'] === 'point') return pointOf(publicKey).toString('base64')
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}
