import type { Engine } from '../engine.ts'
import type { Routes } from '../route.ts'
import type { SystemContext } from './context.ts'
import { mountRoutes } from './mounts.ts'
import { policyRoutes } from './policies.ts'
import { statusRoutes } from './status.ts'
import { uiMountRoutes } from './uimounts.ts'

/** Everything under /v1/sys. */
const routes: Routes<SystemContext> = [...statusRoutes, ...mountRoutes, ...uiMountRoutes, ...policyRoutes]

/** The engine behind sys/, which is always mounted. */
export const createSystem = (context: SystemContext): Engine<SystemContext> => ({ type: 'system', context, routes })
