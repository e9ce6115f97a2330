import { foldName } from '../auth/fold.ts'
import type { Engine } from '../engine.ts'
import type { Route, Routes } from '../route.ts'
import type { SystemContext } from './context.ts'
import { disableAuditDevice, enableAuditDevice, listAuditDevices } from './routes/audit.ts'
import { hashForAudit } from './routes/audithash.ts'
import { disableAuthMethod, enableAuthMethod, listAuthMethods, readAuthMethod } from './routes/auth.ts'
import { readAccessorCapabilities, readCapabilities, readOwnCapabilities } from './routes/capabilities.ts'
import { readCorsConfig, removeCorsConfig, writeCorsConfig } from './routes/config/cors.ts'
import {
  listAuditedHeaders,
  readAuditedHeader,
  removeAuditedHeader,
  writeAuditedHeader,
} from './routes/config/requestheaders.ts'
import {
  beginRootGeneration,
  beginRootTokenGeneration,
  cancelRootGeneration,
  cancelRootTokenGeneration,
  readRootGeneration,
  readRootTokenGeneration,
  updateRootGeneration,
  updateRootTokenGeneration,
} from './routes/generateroot.ts'
import { readHaStatus } from './routes/hastatus.ts'
import { probeHealth, readHealth } from './routes/health.ts'
import { readHostInfo } from './routes/hostinfo.ts'
import { initialise, readInit } from './routes/init.ts'
import { readLeader } from './routes/leader.ts'
import { listLeases, listLeasesBelow, lookUpLease } from './routes/leases/lookup.ts'
import { renewLease, renewLeaseAt, renewLeaseAtOlder, renewLeaseOlder } from './routes/leases/renew.ts'
import { revokeLease, revokeLeaseAt, revokeLeaseAtOlder, revokeLeaseOlder } from './routes/leases/revoke.ts'
import { revokeForce, revokeForceOlder, revokePrefix, revokePrefixOlder } from './routes/leases/revokeprefix.ts'
import { tidyLeases } from './routes/leases/tidy.ts'
import {
  listManagedKeys,
  readManagedKey,
  removeManagedKey,
  testManagedKey,
  writeManagedKey,
} from './routes/managedkeys.ts'
import { readMetrics } from './routes/metrics.ts'
import { disableMount, enableMount, listMounts, readMount } from './routes/mounts.ts'
import { readOpenApi } from './routes/openapi.ts'
import { listCatalog, readCatalog, readPlugin } from './routes/plugins/catalog.ts'
import { reloadBackend, reloadPlugin } from './routes/plugins.ts'
import {
  getPoliciesOlder,
  listPolicies,
  listPoliciesOlder,
  readPolicy,
  readPolicyOlder,
  removePolicy,
  removePolicyOlder,
  writePolicy,
  writePolicyOlder,
} from './routes/policies.ts'
import { readQuotaConfig, writeQuotaConfig } from './routes/quotas/config.ts'
import {
  listLeaseCounts,
  readLeaseCountQuota,
  removeLeaseCountQuota,
  writeLeaseCountQuota,
} from './routes/quotas/leasecount.ts'
import {
  listRateLimits,
  readRateLimitQuota,
  removeRateLimitQuota,
  writeRateLimitQuota,
} from './routes/quotas/ratelimit.ts'
import { moveMount, readMove } from './routes/remount.ts'
import { readResultantAcl } from './routes/resultantacl.ts'
import { sealNode } from './routes/seal.ts'
import { readSealStatus } from './routes/sealstatus.ts'
import {
  countActivity,
  countEntities,
  countMonthlyActivity,
  countRequests,
  countTokens,
  exportActivity,
  readCountersConfig,
} from './routes/status/counters.ts'
import { listInFlight } from './routes/status/inflight.ts'
import { readKeyStatus } from './routes/status/keystatus.ts'
import { readLicense } from './routes/status/license.ts'
import { readDisasterRecovery, readPerformance, readReplication } from './routes/status/replication.ts'
import { listFeatureFlags, listUiNamespaces } from './routes/status/web.ts'
import { hashTool, hashToolWith } from './routes/tools/hash.ts'
import { randomTool, randomToolFirst, randomToolFrom } from './routes/tools/random.ts'
import { readAuthTuning, readMountTuning, tuneAuthMethod, tuneMount } from './routes/tune.ts'
import { listUiMounts, readUiMount } from './routes/uimounts.ts'
import { unsealNode } from './routes/unseal.ts'
import { listVersionHistory } from './routes/versionhistory.ts'

/** Every route below /v1/sys. */
export const table = {
  'GET health': readHealth,
  'HEAD health': probeHealth,
  'GET seal-status': readSealStatus,
  'GET leader': readLeader,
  'GET init': readInit,
  'POST init': initialise,
  'POST unseal': unsealNode,
  'POST seal': sealNode,
  'GET generate-root/attempt': readRootGeneration,
  'POST generate-root/attempt': beginRootGeneration,
  'DELETE generate-root/attempt': cancelRootGeneration,
  'POST generate-root/update': updateRootGeneration,
  'GET generate-root-token/attempt': readRootTokenGeneration,
  'POST generate-root-token/attempt': beginRootTokenGeneration,
  'DELETE generate-root-token/attempt': cancelRootTokenGeneration,
  'POST generate-root-token/update': updateRootTokenGeneration,

  'GET mounts': listMounts,
  'GET mounts/:path*': readMount,
  'POST mounts/:path*': enableMount,
  'DELETE mounts/:path*': disableMount,
  'GET mounts/:path*/tune': readMountTuning,
  'POST mounts/:path*/tune': tuneMount,
  'GET auth/:path*/tune': readAuthTuning,
  'POST auth/:path*/tune': tuneAuthMethod,
  'GET auth': listAuthMethods,
  'GET auth/:path*': readAuthMethod,
  'POST auth/:path*': enableAuthMethod,
  'DELETE auth/:path*': disableAuthMethod,
  'POST remount': moveMount,
  'GET remount/status/:id': readMove,
  'POST plugins/reload/backend': reloadBackend,
  'POST plugins/reload/:type/:name': reloadPlugin,

  'GET internal/specs/openapi': readOpenApi,
  'LIST version-history': listVersionHistory,
  'GET host-info': readHostInfo,
  'GET in-flight-req': listInFlight,
  'GET ha-status': readHaStatus,
  'GET internal/ui/mounts': listUiMounts,
  'GET internal/ui/mounts/:path*': readUiMount,
  'GET internal/ui/feature-flags': listFeatureFlags,
  'GET internal/ui/namespaces': listUiNamespaces,
  'GET plugins/catalog': readCatalog,
  'LIST plugins/catalog/:type': listCatalog,
  'GET plugins/catalog/:type/:name': readPlugin,
  'GET key-status': readKeyStatus,
  'GET internal/counters/tokens': countTokens,
  'GET internal/counters/entities': countEntities,
  'GET internal/counters/requests': countRequests,
  'GET internal/counters/config': readCountersConfig,
  'GET internal/counters/activity': countActivity,
  'GET internal/counters/activity/monthly': countMonthlyActivity,
  'GET internal/counters/activity/export': exportActivity,
  'GET replication/status': readReplication,
  'GET replication/dr/status': readDisasterRecovery,
  'GET replication/performance/status': readPerformance,
  'GET license/status': readLicense,

  'POST tools/hash': hashTool,
  'POST tools/hash/:algorithm': hashToolWith,
  'POST tools/random': randomTool,
  'POST tools/random/:first': randomToolFirst,
  'POST tools/random/:source/:bytes': randomToolFrom,

  'LIST policies/acl': listPolicies,
  'GET policies/acl/:name*': readPolicy,
  'POST policies/acl/:name*': writePolicy,
  'DELETE policies/acl/:name*': removePolicy,
  'LIST policy': listPoliciesOlder,
  'GET policy': getPoliciesOlder,
  'GET policy/:name*': readPolicyOlder,
  'POST policy/:name*': writePolicyOlder,
  'DELETE policy/:name*': removePolicyOlder,

  'GET audit': listAuditDevices,
  'POST audit/:path*': enableAuditDevice,
  'DELETE audit/:path*': disableAuditDevice,
  'POST audit-hash/:path*': hashForAudit,

  'POST capabilities-self': readOwnCapabilities,
  'POST capabilities': readCapabilities,
  'POST capabilities-accessor': readAccessorCapabilities,
  'GET internal/ui/resultant-acl': readResultantAcl,

  'POST leases/lookup': lookUpLease,
  'LIST leases/lookup': listLeases,
  'LIST leases/lookup/:prefix*': listLeasesBelow,
  'POST leases/renew': renewLease,
  'POST leases/renew/:lease_id*': renewLeaseAt,
  'POST leases/revoke': revokeLease,
  'POST leases/revoke/:lease_id*': revokeLeaseAt,
  'POST leases/revoke-prefix/:prefix*': revokePrefix,
  'POST leases/revoke-force/:prefix*': revokeForce,
  'POST renew': renewLeaseOlder,
  'POST renew/:lease_id*': renewLeaseAtOlder,
  'POST revoke': revokeLeaseOlder,
  'POST revoke/:lease_id*': revokeLeaseAtOlder,
  'POST revoke-prefix/:prefix*': revokePrefixOlder,
  'POST revoke-force/:prefix*': revokeForceOlder,
  'POST leases/tidy': tidyLeases,

  'LIST managed-keys/:type': listManagedKeys,
  'POST managed-keys/:type/:name': writeManagedKey,
  'GET managed-keys/:type/:name': readManagedKey,
  'DELETE managed-keys/:type/:name': removeManagedKey,
  'POST managed-keys/:type/:name/test/sign': testManagedKey,

  'GET metrics': readMetrics,

  'LIST quotas/rate-limit': listRateLimits,
  'GET quotas/rate-limit/:name': readRateLimitQuota,
  'POST quotas/rate-limit/:name': writeRateLimitQuota,
  'DELETE quotas/rate-limit/:name': removeRateLimitQuota,
  'GET quotas/config': readQuotaConfig,
  'POST quotas/config': writeQuotaConfig,
  'LIST quotas/lease-count': listLeaseCounts,
  'GET quotas/lease-count/:name': readLeaseCountQuota,
  'POST quotas/lease-count/:name': writeLeaseCountQuota,
  'DELETE quotas/lease-count/:name': removeLeaseCountQuota,
  'GET config/cors': readCorsConfig,
  'POST config/cors': writeCorsConfig,
  'DELETE config/cors': removeCorsConfig,
  'GET config/auditing/request-headers': listAuditedHeaders,
  'GET config/auditing/request-headers/:header': readAuditedHeader,
  'POST config/auditing/request-headers/:header': writeAuditedHeader,
  'DELETE config/auditing/request-headers/:header': removeAuditedHeader,
} satisfies Readonly<Record<string, Route<SystemContext>>>

const routes: Routes<SystemContext> = Object.values(table)

const folds = {
  'policies/acl/:name*': foldName,
  'policy/:name*': foldName,
  'managed-keys/:type/:name': foldName,
  'config/auditing/request-headers/:header': foldName,
}

/** The engine behind sys/, which is always mounted. */
export const createSystem = (context: SystemContext): Engine<SystemContext> => ({
  type: 'system',
  context,
  routes,
  folds,
})
