import { never } from '../../scripts/bench/bulk.ts'
import { systemClock } from '../../src/clock.ts'
import { createAuthority } from '../../src/engines/pki/authority/authorities.ts'
import { certificateTable } from '../../src/engines/pki/certificates/tables.ts'
import { crossClusterPart, queuePart } from '../../src/engines/pki/tidy/allsites.ts'
import { certStorePart } from '../../src/engines/pki/tidy/certstore.ts'
import type { Part, Place as TidyPlace } from '../../src/engines/pki/tidy/part.ts'
import { EndedRevocations } from '../../src/engines/pki/tidy/revoked.ts'
import { defaultOrder } from '../../src/engines/pki/tidy/settings.ts'
import type { Cursor } from '../../src/engines/pki/tidy/tables.ts'
import { Place } from '../keys/support.ts'
import { nodeOn } from '../pki/tidy/node.ts'
import { testMac } from '../store/support.ts'

/** Years after every certificate has ended. */
const clock = { ...systemClock, wall: () => never + 1_000_000_000_000 }
const serialOf = (n: number, prefix = ''): string => prefix + n.toString(16).padStart(40 - prefix.length, '0')

/** Pages from the beginning and the middle of certificates and revocations that have all ended, of every site. */
export async function tidyPages(url: string): Promise<void> {
  await using place = await Place.at(url)
  const { database } = place
  database.useMac(testMac())
  const table = database.table(certificateTable)
  const { mount = '' } = (await database.read((q) => table.list(q, {}, { by: 'id', limit: 1 })))[0] ?? {}
  await database.transaction((tx) => createAuthority({ database, clock }, tx, mount))
  const node = nodeOn(database, { clock, url, site: 'default' })
  const deps = { ...node, start: async () => true }
  const revocations = new EndedRevocations(deps)
  const order = { ...defaultOrder, certStore: true, safetyBuffer: 1 }
  const run = await node.tidying.runs.begin(mount, order, false)
  const lease = await database.jobLease('tidy', 60)
  if (run === undefined || lease === undefined) throw new Error('tidy did not begin')
  const claim = { job: 'tidy', fence: lease.fence }
  const at = (cursor: Cursor | null): TidyPlace => {
    const { signal } = new AbortController()
    return { mount, run, claim, cursor, checked: 0, total: 0, left: new Map(), signal }
  }
  const advance = async (part: Part, cursor: Cursor | null) => {
    const work = await part(at(cursor))
    return node.tidying.runs.advance(mount, run, claim, work)
  }
  const site = 'default'
  for (const cursor of [null, { site, notAfter: never + 50_000, serial: serialOf(50_000) }]) {
    const { checked } = await advance(certStorePart(deps), cursor)
    if (checked !== 200) throw new Error(`${checked} certificates`)
    await advance(queuePart(deps), cursor)
    await advance(crossClusterPart(deps, revocations), cursor)
  }
  for (const serial of ['', serialOf(50_000, 'ff')]) {
    const { found } = await revocations.next(at(null), { site, notAfter: serial === '' ? 0 : never, serial })
    if (found !== 200) throw new Error(`${found} revocations`)
  }
  await node.tidying.runs.finish(mount, run, claim)
  await lease.release()
  await node.dispose()
  await place.sql('DELETE FROM pki_authorities WHERE mount = ?', [mount])
}
