import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Custody } from '../../keys/custody.ts'
import type { Routes } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { TransitContext } from './context.ts'
import { decryptRoute } from './decrypt.ts'
import { encryptRoute } from './encrypt.ts'
import { hashRoutes } from './hash.ts'
import { hmacRoutes } from './hmac.ts'
import { keyRoutes } from './keys.ts'
import { randomRoutes } from './random.ts'
import { rewrapRoute } from './rewrap.ts'
import { Rings } from './rings.ts'
import { signRoutes } from './sign.ts'
import { verifyRoutes } from './verify.ts'

/** Everything under a transit mount. */
const routes: Routes<TransitContext> = [
  ...keyRoutes,
  encryptRoute,
  decryptRoute,
  rewrapRoute,
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
  clock: Clock
  ringLimit: number
}): Engine<TransitContext> {
  const { database, custody, clock, ringLimit } = options
  const { materials, exporting, cipher, signer, hmacs } = custody
  const rings = new Rings({ database, materials, exporting, clock, limit: ringLimit })
  return {
    type: 'transit',
    routes,
    context: {
      rings,
      cipher,
      signer,
      hmacs,
      material: (id) => materials.fetch(id),
      random: (source, bytes) => custody.random(source, bytes),
    },
    pristine: (mount) => rings.empty(mount),
    reload: async () => rings.forget(),
    onUnmount: (mount) => rings.removeAll(mount),
  }
}
