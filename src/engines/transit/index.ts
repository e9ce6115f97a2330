import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Custody } from '../../keys/custody.ts'
import type { ManagedKeys } from '../../keys/managed/keys.ts'
import type { Routes } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { TransitContext } from './context.ts'
import { autoRotation } from './ring/autorotate.ts'
import { Rings } from './ring/rings.ts'
import { createSettings, Settings } from './ring/settings.ts'
import { backupRoute } from './routes/backup.ts'
import { byokRoutes } from './routes/byok.ts'
import { certificateRoutes } from './routes/certificates.ts'
import { datakeyRoute } from './routes/datakey.ts'
import { decryptRoute } from './routes/decrypt.ts'
import { encryptRoute } from './routes/encrypt.ts'
import { exportRoutes } from './routes/export.ts'
import { hashRoutes } from './routes/hash.ts'
import { hmacRoutes } from './routes/hmac.ts'
import { importRoutes } from './routes/import.ts'
import { importVersionRoute } from './routes/importversion.ts'
import { keyRoutes } from './routes/keys.ts'
import { configurationRoutes } from './routes/mountconfig.ts'
import { randomRoutes } from './routes/random.ts'
import { restoreRoutes } from './routes/restore.ts'
import { rewrapRoute } from './routes/rewrap.ts'
import { signRoutes } from './routes/sign.ts'
import { softDeleteRoutes } from './routes/softdelete.ts'
import { trimRoute } from './routes/trim.ts'
import { verifyRoutes } from './routes/verify.ts'

/** Everything under a transit mount. */
export const routes: Routes<TransitContext> = [
  ...keyRoutes,
  ...importRoutes,
  importVersionRoute,
  ...exportRoutes,
  ...byokRoutes,
  ...certificateRoutes,
  backupRoute,
  ...restoreRoutes,
  trimRoute,
  ...softDeleteRoutes,
  ...configurationRoutes,
  encryptRoute,
  decryptRoute,
  rewrapRoute,
  datakeyRoute,
  ...signRoutes,
  ...verifyRoutes,
  ...hmacRoutes,
  ...randomRoutes,
  ...hashRoutes,
]

/** @param ringLimit key rings cached at most, over all mounts */
export function createTransit(options: {
  database: Database
  custody: Custody
  managed: ManagedKeys
  clock: Clock
  ringLimit: number
}): Engine<TransitContext> {
  const { database, custody, managed, clock, ringLimit } = options
  const {
    approval,
    materials,
    keyImport,
    keyExport,
    makeExportable,
    extracting,
    cipher,
    derived,
    rsaCipher,
    signer,
    hmacs,
  } = custody
  const settings = new Settings(database)
  const rings = new Rings({ database, materials, makeExportable, extracting, settings, clock, limit: ringLimit })
  return {
    type: 'transit',
    routes,
    jobs: [autoRotation({ database, rings, clock })],
    context: {
      rings,
      keyImport,
      keyExport,
      clock,
      settings,
      approval,
      cipher,
      derived,
      rsaCipher,
      signer,
      hmacs,
      managed,
      material: (id) => materials.fetch(id),
      random: (source, bytes) => custody.random(source, bytes),
    },
    pristine: (mount) => rings.empty(mount),
    reload: async (mount) => rings.reload(mount),
    onMount: (mount) => database.transaction((tx) => createSettings(database, tx, mount.uuid)),
    async onUnmount(mount) {
      await rings.removeAll(mount)
      await keyImport.removeWrappingKey(mount.uuid)
      await settings.remove(mount)
    },
  }
}
