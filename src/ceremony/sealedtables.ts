import { devicesTable } from '../audit/devices.ts'
import { headsTable as chainHeadsTable } from '../audit/heads.ts'
import { policyTable } from '../auth/policytable.ts'
import { recoveryTable } from '../auth/recovery.ts'
import { tokenTable } from '../auth/token.ts'
import { authoritySet } from '../engines/pki/authority/bootstrap.ts'
import {
  clustersTable,
  issuersTable,
  keysTable as pkiKeysTable,
  authoritiesTable as pkiSettingsTable,
} from '../engines/pki/authority/tables.ts'
import { revocationTable } from '../engines/pki/certificates/tables.ts'
import { crlSet } from '../engines/pki/crl/bootstrap.ts'
import { crlsTable, fingerprintsTable, manifestsTable, numbersTable, segmentsTable } from '../engines/pki/crl/tables.ts'
import { ledgersTable, queueTable } from '../engines/pki/revocation/tables.ts'
import { rolesTable } from '../engines/pki/roles/table.ts'
import { settingsSet } from '../engines/transit/ring/bootstrap.ts'
import { keysTable, settingsTable, versionsTable } from '../engines/transit/ring/tables.ts'
import type { SealedSet, SealedTable } from '../keys/cluster/verification.ts'
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

/** Every set with a head. A worker would begin one that the token does not remember anew, without members. */
export const sealedSets: readonly SealedSet[] = [
  ...[keksTable, mountsTable, policyTable, devicesTable, systemSettingsTable].map((table) => ({
    set: table.name,
    table,
  })),
  ...[{ set: settingsSet }, { set: authoritySet }],
  { set: crlSet, table: manifestsTable },
]
