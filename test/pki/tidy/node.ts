import type { Clock } from '../../../src/clock.ts'
import { Authorities } from '../../../src/engines/pki/authority/authorities.ts'
import { IssuerRows } from '../../../src/engines/pki/authority/issuerrows.ts'
import { Certificates } from '../../../src/engines/pki/certificates/certificates.ts'
import { type AutoTidy, defaultAutoTidy } from '../../../src/engines/pki/tidy/settings.ts'
import { Tidying } from '../../../src/engines/pki/tidy/tidying.ts'
import { Runner } from '../../../src/jobs/runner.ts'
import { Metrics } from '../../../src/metrics.ts'
import type { Database } from '../../../src/store/database.ts'
import { quiet } from '../../store/support.ts'
import { openEntries } from './entries.ts'

export type TidyNode = ReturnType<typeof nodeOn>

/** The part of a worker that tidies. @param url of the database, for the lists */
export function nodeOn(database: Database, { clock, url, site }: { clock: Clock; url: string; site: string }) {
  const metrics = new Metrics()
  const common = { database, clock, site, log: quiet, metrics }
  const authorities = new Authorities(common)
  const issuerRows = new IssuerRows(common)
  const leases = { insert: async () => new Map(), limits: () => undefined }
  const certificates = new Certificates({ ...common, leases })
  const runner = new Runner(common)
  const lists = openEntries(url, clock)
  const start = runner.start.bind(runner)
  const tidying = new Tidying({ ...common, authorities, issuerRows, certificates, lists, start })
  const configure = (mount: string, tidy: Partial<AutoTidy>) =>
    authorities.change({ uuid: mount }, async () => ({
      settings: { tidy: { ...defaultAutoTidy, ...tidy } },
      result: undefined,
    }))
  const dispose = async () => {
    await runner[Symbol.asyncDispose]()
    await lists[Symbol.asyncDispose]()
  }
  return { ...common, authorities, issuerRows, certificates, lists, tidying, configure, dispose }
}
