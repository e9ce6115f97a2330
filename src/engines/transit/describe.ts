import { absent } from '../../errors.ts'
import { type Algorithm, algorithmOf } from '../../keys/algorithms.ts'
import { describe as describeMaterial, Material } from '../../keys/material.ts'
import type { MaterialRow } from '../../keys/tables.ts'
import type { Data, Mount } from '../../route.ts'
import { DamagedRow } from '../../store/faults.ts'
import type { Rings } from './rings.ts'

/**
 * The key object of reads and of every answer that changes a key. `keys` shows the versions that may still be used;
 * `custody` says of each where its key is, what the token said of it when it was made, and the same of its HMAC secret.
 * @throws ApiError 404 when there is no such key
 */
export async function describeKey(rings: Rings, mount: Mount, name: string): Promise<Data> {
  const found = await rings.inventory(mount, name)
  if (found === undefined) throw absent()
  const { key, versions } = found.ring
  const partOf = (id: string): MaterialRow => {
    const part = found.parts.get(id)
    if (part === undefined) throw new DamagedRow('materials', id, `it is missing, and key ${key.id} names it`)
    return part
  }
  const algorithm = algorithmOf(key.type)
  const { abilities } = algorithm
  const keys: Record<string, unknown> = {}
  const custody: Record<string, unknown> = {}
  for (const { version, material, hmacMaterial, createdAt } of versions.values()) {
    if (version < key.minDecryptionVersion) continue
    const part = partOf(material)
    const hmac = hmacMaterial === null ? {} : { hmac: describeMaterial(partOf(hmacMaterial)) }
    keys[version] = entryOf(algorithm, part, createdAt)
    custody[version] = { ...describeMaterial(part), ...hmac }
  }
  return {
    name: key.name,
    type: key.type,
    derived: key.derived,
    convergent_encryption: key.convergent,
    deletion_allowed: key.deletionAllowed,
    exportable: key.exportable,
    allow_plaintext_backup: key.allowPlaintextBackup,
    key_size: key.keySize,
    min_available_version: key.minAvailableVersion,
    min_decryption_version: key.minDecryptionVersion,
    min_encryption_version: key.minEncryptionVersion,
    latest_version: key.latestVersion,
    supports_encryption: abilities.encrypt,
    supports_decryption: abilities.decrypt,
    supports_signing: abilities.sign,
    supports_derivation: abilities.derive,
    auto_rotate_period: key.autoRotateSeconds,
    imported_key: key.imported,
    ...(key.imported ? { imported_key_allow_rotation: key.allowRotation } : {}),
    ...(key.backupInfo ? { backup_info: key.backupInfo } : {}),
    ...(key.restoreInfo ? { restore_info: key.restoreInfo } : {}),
    soft_deleted: key.softDeleted,
    keys,
    custody,
  }
}

/** Seconds for secret keys; name, time and public key for pairs. */
function entryOf(algorithm: Algorithm, part: MaterialRow, createdAt: number): unknown {
  if (algorithm.entry === undefined) return Math.floor(createdAt / 1000)
  return {
    name: algorithm.entry,
    creation_time: new Date(createdAt).toISOString(),
    public_key: publicKeyText(algorithm, new Material(part)),
    certificate_chain: '',
  }
}

function publicKeyText(algorithm: Algorithm, { publicKey }: Material): string {
  if (algorithm.kind !== 'ed25519') return publicKey.export({ type: 'spki', format: 'pem' }).toString()
  return Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64')
}
