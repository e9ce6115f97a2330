/**
 * A process beside a node of Strongroom, with its configuration: makes segments of so many revocations of a CRL issuer
 * that has none, sealed by the project's own code.
 *
 * node revoked.ts CONFIGURATION CRL-ISSUER COUNT
 */
import { withCustody } from '../../../src/commands/custody.ts'
import { Manifests } from '../../../src/engines/pki/crl/manifests.ts'
import { contentOf } from '../../../src/engines/pki/crl/record.ts'
import { mostEntries, Segments } from '../../../src/engines/pki/crl/segments.ts'
import type { SegmentName } from '../../../src/engines/pki/crl/tables.ts'
import { ledgersTable } from '../../../src/engines/pki/revocation/tables.ts'
import type { Database } from '../../../src/store/database.ts'

const site = 'default'
const lifeMilliseconds = 365 * 86_400_000

const [config = '', crlIssuer = '', count = ''] = process.argv.slice(2)
await withCustody({ config }, (_, database) => fill(database, Number(count)))

async function fill(database: Database, count: number): Promise<void> {
  const segments = new Segments({ database, now: Date.now })
  const names: SegmentName[] = []
  for (let from = 1; from <= count; from += mostEntries) {
    const content = contentOf(revocations(from, Math.min(count, from + mostEntries - 1)))
    names.push(await database.transaction((tx) => segments.insert(tx, crlIssuer, site, content)))
  }
  await database.transaction((tx) => database.table(ledgersTable).insert(tx, { crlIssuer, site, last: count }))
  const sites = { [site]: { absorbed: count, segments: names } }
  await new Manifests(database).change(crlIssuer, async () => ({ after: { sites }, result: undefined }))
}

/** Revocations of certificates that do not exist, with only the columns that segments are made from. */
function revocations(from: number, to: number) {
  const revokedAt = Date.now()
  const common = { id: '', namespace: '', mount: '', rev: 1, epoch: 1, site, issuer: '', crlIssuer, reason: null }
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const serial = `41${(from + index).toString(16).padStart(38, '0')}`
    return { ...common, serial, revokedAt, notAfter: revokedAt + lifeMilliseconds, seq: from + index }
  })
}
