import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { ManagedKeys } from '../../keys/managed/managedkeys.ts'
import type { Materials } from '../../keys/materials/materials.ts'
import type { Transfer } from '../../keys/transfer/transfer.ts'
import type { Operations } from '../../keys/use/operations.ts'
import type { Route, Routes } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { TransitContext } from './context.ts'
import { autoRotation } from './ring/autorotate.ts'
import { KeyChanges } from './ring/changes.ts'
import { Keys } from './ring/keys.ts'
import { Removal } from './ring/removal.ts'
import { Rings } from './ring/rings.ts'
import { KeyRotation } from './ring/rotation.ts'
import { createSettings, Settings } from './ring/settings.ts'
import { VersionStore, versionsOfManaged } from './ring/versionstore.ts'
import { backUpKey } from './routes/backup.ts'
import { exportKeySecurely, exportKeyVersionSecurely } from './routes/byokexport.ts'
import { readCacheConfig, writeCacheConfig } from './routes/cacheconfig.ts'
import { readKeysConfig, writeKeysConfig } from './routes/configkeys.ts'
import { generateDataKey } from './routes/datakey.ts'
import { decryptData } from './routes/decrypt.ts'
import { encryptData } from './routes/encrypt.ts'
import { exportKey, exportKeyVersion } from './routes/export.ts'
import { hashData, hashDataWith } from './routes/hash.ts'
import { generateHmac, generateHmacWithHash } from './routes/hmac.ts'
import { configureKey } from './routes/keys/config.ts'
import { requestCertificate } from './routes/keys/csr.ts'
import { importKey } from './routes/keys/import.ts'
import { importKeyVersion } from './routes/keys/importversion.ts'
import { createKey, deleteKey, readKey } from './routes/keys/key.ts'
import { listKeys } from './routes/keys/list.ts'
import { rotateKey } from './routes/keys/rotate.ts'
import { setCertificate } from './routes/keys/setcertificate.ts'
import { softDeleteKey } from './routes/keys/softdelete.ts'
import { restoreSoftDeletedKey } from './routes/keys/softdeleterestore.ts'
import { trimKey } from './routes/keys/trim.ts'
import { generateRandom, generateRandomFirst, generateRandomFrom } from './routes/random.ts'
import { restoreKey, restoreKeyAs } from './routes/restore.ts'
import { rewrapData } from './routes/rewrap.ts'
import { signData, signDataWithHash } from './routes/sign.ts'
import { verifyData, verifyDataWithHash } from './routes/verify.ts'
import { readWrappingKey } from './routes/wrappingkey.ts'

/** Every route below a transit mount. */
export const table = {
  'LIST keys': listKeys,
  'POST keys/:name': createKey,
  'GET keys/:name': readKey,
  'DELETE keys/:name': deleteKey,
  'POST keys/:name/config': configureKey,
  'POST keys/:name/rotate': rotateKey,
  'POST keys/:name/trim': trimKey,
  'DELETE keys/:name/soft-delete': softDeleteKey,
  'POST keys/:name/soft-delete-restore': restoreSoftDeletedKey,
  'POST keys/:name/import': importKey,
  'POST keys/:name/import_version': importKeyVersion,
  'POST keys/:name/csr': requestCertificate,
  'POST keys/:name/set-certificate': setCertificate,

  'GET wrapping_key': readWrappingKey,
  'GET export/:key_type/:name': exportKey,
  'GET export/:key_type/:name/:version': exportKeyVersion,
  'GET byok-export/:dst/:src': exportKeySecurely,
  'GET byok-export/:dst/:src/:version': exportKeyVersionSecurely,
  'GET backup/:name': backUpKey,
  'POST restore': restoreKey,
  'POST restore/:name*': restoreKeyAs,

  'POST encrypt/:name': encryptData,
  'POST decrypt/:name': decryptData,
  'POST rewrap/:name': rewrapData,
  'POST datakey/:type/:name': generateDataKey,
  'POST sign/:name': signData,
  'POST sign/:name/:hash_algorithm': signDataWithHash,
  'POST verify/:name': verifyData,
  'POST verify/:name/:hash_algorithm': verifyDataWithHash,
  'POST hmac/:name': generateHmac,
  'POST hmac/:name/:algorithm': generateHmacWithHash,
  'POST hash': hashData,
  'POST hash/:algorithm': hashDataWith,
  'POST random': generateRandom,
  'POST random/:first': generateRandomFirst,
  'POST random/:source/:bytes': generateRandomFrom,

  'GET config/keys': readKeysConfig,
  'POST config/keys': writeKeysConfig,
  'GET cache-config': readCacheConfig,
  'POST cache-config': writeCacheConfig,
} satisfies Readonly<Record<string, Route<TransitContext>>>

export const routes: Routes<TransitContext> = Object.values(table)

interface TransitOptions {
  readonly database: Database
  readonly operations: Operations
  readonly materials: Materials
  readonly transfer: Transfer
  readonly managed: ManagedKeys
  readonly clock: Clock
  /** The most key rings cached, over all mounts. */
  readonly ringLimit: number
}

/** The transit engine. */
export function createTransit(options: TransitOptions): Engine<TransitContext> {
  const { database, materials, clock } = options
  const context = createContext(options)
  const { rings, rotation, settings } = context
  const removal = new Removal(options)
  return {
    type: 'transit',
    routes,
    jobs: [autoRotation({ database, rotation, clock })],
    context,
    pristine: async (mount) =>
      (await settings.of(mount)).rev === 1 && (await rings.empty(mount)) && !(await materials.any(mount.uuid)),
    reload: async (mount) => rings.reload(mount),
    onMount: (mount, tx) => createSettings(database, tx, mount.uuid),
    removeSome: (mount, claim) => removal.removeSome(mount, claim),
    retain: (uuids) => rings.retain(uuids),
    managedKeyUses: (q, managedKey, mounts, most) => versionsOfManaged(database, q, { managedKey, mounts, most }),
  }
}

function createContext(options: TransitOptions): TransitContext {
  const { database, operations, materials, transfer, managed, clock, ringLimit } = options
  const { keyImport, keyExport, makeExportable } = transfer
  const settings = new Settings(database)
  const rings = new Rings({ database, materials, settings, limit: ringLimit })
  const versions = new VersionStore({ database, materials, clock })
  const changes = new KeyChanges({ database, materials, makeExportable, rings, clock })
  return {
    ...operations,
    rings,
    keys: new Keys({ database, materials, rings, versions, clock }),
    versions,
    changes,
    rotation: new KeyRotation({ rings, changes, versions }),
    keyImport,
    keyExport,
    clock,
    settings,
    managed,
  }
}
