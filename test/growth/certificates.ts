import { never } from '../../scripts/bench/bulk.ts'
import { systemClock } from '../../src/clock.ts'
import { Certificates } from '../../src/engines/pki/certificates/certificates.ts'
import { type CertificateFilter, CertificateLists } from '../../src/engines/pki/certificates/listing.ts'
import { certificateTable } from '../../src/engines/pki/certificates/tables.ts'
import { Leases } from '../../src/leases/leases.ts'
import { log, Place } from '../keys/support.ts'

const limit = 100
const serialOf = (n: number): string => n.toString(16).padStart(40, '0')

const expectPage = (rows: readonly unknown[], what: string, count = limit): void => {
  if (rows.length !== count) throw new Error(`${what}: ${rows.length} certificates`)
}

/**
 * Pages of certificates in every order there is, single ones, and a portion of a removal, in the mount that holds them.
 */
export async function readCertificates(url: string): Promise<void> {
  await using place = await Place.at(url)
  const { database } = place
  const table = database.table(certificateTable)
  const { mount = '' } = (await database.read((q) => table.list(q, {}, { by: 'id', limit: 1 })))[0] ?? {}
  const leases = new Leases({
    ...{ database, clock: systemClock, log, removed: () => false },
    tokens: { get: async () => undefined },
    revokeInEngine: async () => undefined,
  })
  for (const site of ['default', 'small']) {
    const certificates = new Certificates({ database, clock: systemClock, leases, site })
    const lists = new CertificateLists({ database, site })
    const own = serialOf(site === 'small' ? 50_000 : 50_001)
    if ((await certificates.find({ mount, serial: own })) === undefined) throw new Error(`no certificate ${own}`)
    if (await certificates.find({ mount, serial: 'ab' })) throw new Error('a certificate that nobody issued')
    await certificates.count(mount)
    if (await certificates.empty(mount)) throw new Error('no certificates')
    expectPage(await lists.list(mount, { limit, after: own }), 'serials')
    const filters: CertificateFilter[] = [
      {},
      { expiresBefore: never + 190_000 },
      { issuer: 'often' },
      { issuer: 'often', expiresBefore: never + 190_000 },
    ]
    for (const filter of filters)
      expectPage(await lists.detailed(mount, { limit, after: own }, filter), `${site} ${JSON.stringify(filter)}`)
  }
  const rare = { issuer: 'rare', expiresBefore: never + 100_000 }
  const lists = new CertificateLists({ database, site: 'default' })
  expectPage(await lists.detailed(mount, { limit, after: serialOf(50_001) }, rare), 'of a rare issuer', 49)
  const lease = await database.jobLease('sweep mounts', 60)
  const claim = { job: 'sweep mounts', fence: lease?.fence ?? 0n }
  const certificates = new Certificates({ database, clock: systemClock, leases, site: 'default' })
  if (!(await certificates.removeSome({ uuid: mount, path: '', type: 'pki', config: {} }, claim)))
    throw new Error('nothing was removed')
  await lease?.release()
}
