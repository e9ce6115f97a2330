import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Leases } from '../../leases/leases.ts'
import type { Database } from '../../store/database.ts'
import { Certificates } from './certificates/certificates.ts'
import { Revocations } from './certificates/revocations.ts'

interface PkiOptions {
  readonly database: Database
  readonly clock: Clock
  readonly leases: Leases
  /** This node's: certificates, revocation lists and URLs belong to a site. */
  readonly site: string
}

/** The certificate authority. It can be mounted, and every path in it answers `unsupported path` until it is built. */
export function createPki(options: PkiOptions): Engine<undefined> {
  const certificates = new Certificates(options)
  const revocations = new Revocations(options)
  return {
    type: 'pki',
    context: undefined,
    routes: [],
    removeSome: (mount, claim) => certificates.removeSome(mount, claim),
    revokeLease: (mount, payload) => revocations.revokeLease(mount, payload),
  }
}
