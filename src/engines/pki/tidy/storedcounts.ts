import type { Metrics } from '../../../metrics.ts'
import { pages } from '../../../store/pages.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import type { TidyDeps } from './deps.ts'
import { automatic } from './tables.ts'

const mostMounts = 1000
const mountsAtOnce = 200

interface Parts extends Pick<TidyDeps, 'database' | 'authorities' | 'certificates'> {
  readonly metrics: Pick<Metrics, 'shared'>
}

/** Publishes the numbers of stored certificates and revocations of each mount that enables it, under Vault's names. */
export function shareStoredCounts(parts: Parts): void {
  const { metrics, certificates } = parts
  const share = (name: string, help: string, count: (mount: string) => Promise<number>) =>
    metrics.shared(`vault.secrets.pki.${name}`, help, async () => {
      const mounts = await publishing(parts)
      return Promise.all(
        mounts.map(async (mount) => ({
          name: `vault.secrets.pki.${mount}.${name}`,
          labels: {},
          value: await count(mount),
        })),
      )
    })
  share('total_certificates_stored', 'Stored certificates of a mount at this site.', (mount) =>
    certificates.count(mount),
  )
  share('total_revoked_certificates_stored', 'Stored revocations of a mount at this site.', (mount) =>
    certificates.countRevoked(mount),
  )
}

async function publishing({ database, authorities }: Parts): Promise<string[]> {
  const found: string[] = []
  for await (const page of pages(database, database.unverified(automatic), {}, { by: 'id', limit: mountsAtOnce })) {
    for (const { mount, tidy } of page) {
      if (tidy === null) continue
      const authority = await unlessDamaged(async () => authorities.of({ uuid: mount }))
      if (authority?.settings.tidy?.publishStoredCertificateCountMetrics) found.push(mount)
      if (found.length === mostMounts) return found
    }
  }
  return found
}
