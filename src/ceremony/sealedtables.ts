import { devicesTable } from '../audit/devices.ts'
import { headsTable as chainHeadsTable } from '../audit/heads.ts'
import { policyTable } from '../auth/policies.ts'
import { recoveryTable } from '../auth/recovery.ts'
import { tokenTable } from '../auth/token.ts'
import {
  clustersTable,
  issuersTable,
  keysTable as pkiKeysTable,
  authoritiesTable as pkiSettingsTable,
} from '../engines/pki/authority/tables.ts'
import { revocationTable } from '../engines/pki/certificates/tables.ts'
import { crlsTable, fingerprintsTable, manifestsTable, numbersTable, segmentsTable } from '../engines/pki/crl/tables.ts'
import { ledgersTable, queueTable } from '../engines/pki/revocation/tables.ts'
import { rolesTable } from '../engines/pki/roles/table.ts'
import { keysTable, settingsTable, versionsTable } from '../engines/transit/ring/tables.ts'
import type { SealedTable } from '../keys/cluster/verification.ts'
import { managedKeysTable } from '../keys/managed/table.ts'
import { clusterTable, intentsTable, keksTable, materialsTable, systemKeysTable } from '../keys/tables.ts'
import { leaseTable } from '../leases/lease.ts'
import { looseMountsTable } from '../request/mounts/loose.ts'
import { mountsTable } from '../request/mounts/mount.ts'
import { remountsTable } from '../request/mounts/remounts.ts'
import { settingsTable as systemSettingsTable } from '../settings/settings.ts'
import { headsTable } from '../store/sealed/heads.ts'

/** Every table whose rows decide something. A test compares them with the schema. */
export const sealedTables: readonly SealedTable[] = [
  ...[clusterTable, keksTable, systemKeysTable, headsTable],
  ...[mountsTable, looseMountsTable, remountsTable, policyTable, tokenTable, recoveryTable, leaseTable],
  ...[devicesTable, chainHeadsTable, systemSettingsTable],
  ...[materialsTable, intentsTable, managedKeysTable],
  ...[keysTable, versionsTable, settingsTable],
  ...[pkiSettingsTable, clustersTable, pkiKeysTable, issuersTable, rolesTable],
  ...[revocationTable, ledgersTable, queueTable],
  ...[numbersTable, manifestsTable, segmentsTable, fingerprintsTable, crlsTable],
]

/** Those of them whose rows are a set with a head. */
export const sealedSets: readonly SealedTable[] = [
  ...[keksTable, mountsTable, policyTable, devicesTable],
  systemSettingsTable,
]
