import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Custody } from '../../keys/custody.ts'
import type { ManagedKeys } from '../../keys/managed/keys.ts'
import type { Routes } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import { autoRotation } from './autorotate.ts'
import { backupRoute } from './backup.ts'
import { byokRoutes } from './byok.ts'
import { certificateRoutes } from './certificates.ts'
import { configurationRoutes } from './configuration.ts'
import type { TransitContext } from './context.ts'
import { datakeyRoute } from './datakey.ts'
import { decryptRoute } from './decrypt.ts'
import { encryptRoute } from './encrypt.ts'
import { exportRoutes } from './export.ts'
import { hashRoutes } from './hash.ts'
import { hmacRoutes } from './hmac.ts'
import { importRoutes } from './import.ts'
import { importVersionRoute } from './importversion.ts'
import { keyRoutes } from './keys.ts'
import { randomRoutes } from './random.ts'
import { restoreRoutes } from './restore.ts'
import { rewrapRoute } from './rewrap.ts'
import { Rings } from './rings.ts'
import { createSettings, Settings } from './settings.ts'
import { signRoutes } from './sign.ts'
import { softDeleteRoutes } from './softdelete.ts'
import { trimRoute } from './trim.ts'
import { verifyRoutes } from './verify.ts'

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
  const { approval, materials, importing, leaving, exporting, extracting, cipher, derived, rsaCipher, signer, hmacs } =
    custody
  const settings = new Settings(database)
  const rings = new Rings({ database, materials, exporting, extracting, settings, clock, limit: ringLimit })
  return {
    type: 'transit',
    routes,
    jobs: [autoRotation({ database, rings, clock })],
    context: {
      rings,
      importing,
      leaving,
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
      await importing.removeWrappingKey(mount.uuid)
      await settings.remove(mount)
    },
  }
}
