import type { Engine } from '../engine.ts'
import type { Routes } from '../route.ts'
import { aboutRoutes } from './about.ts'
import { auditRoutes } from './audit.ts'
import { authMountRoutes } from './authmounts.ts'
import { capabilityRoutes } from './capabilities.ts'
import type { SystemContext } from './context.ts'
import { leaseRoutes } from './leases.ts'
import { managedKeyRoutes } from './managedkeys.ts'
import { metricsRoute } from './metrics.ts'
import { mountRoutes } from './mounts.ts'
import { pluginRoutes } from './plugins.ts'
import { policyRoutes } from './policies.ts'
import { remountRoutes } from './remount.ts'
import { resultantAclRoute } from './resultantacl.ts'
import { sealRoute, unsealRoute } from './seal.ts'
import { statusRoutes } from './status.ts'
import { tuneRoutes } from './tune.ts'
import { uiMountRoutes } from './uimounts.ts'

/** Everything under /v1/sys. */
const routes: Routes<SystemContext> = [
  ...statusRoutes,
  unsealRoute,
  sealRoute,
  ...mountRoutes,
  ...tuneRoutes,
  ...authMountRoutes,
  ...remountRoutes,
  ...pluginRoutes,
  ...aboutRoutes,
  ...uiMountRoutes,
  ...policyRoutes,
  ...auditRoutes,
  ...capabilityRoutes,
  resultantAclRoute,
  ...leaseRoutes,
  ...managedKeyRoutes,
  metricsRoute,
]

/** The engine behind sys/, which is always mounted. */
export const createSystem = (context: SystemContext): Engine<SystemContext> => ({ type: 'system', context, routes })
