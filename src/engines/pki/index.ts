import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Leases } from '../../leases/leases.ts'
import type { Route, Routes } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import { Certificates } from './certificates/certificates.ts'
import { Revocations } from './certificates/revocations.ts'
import type { PkiContext } from './context.ts'
import { Roles } from './roles/roles.ts'
import { explainRole } from './routes/roles/explain.ts'
import { listRoles } from './routes/roles/list.ts'
import { deleteRole, patchRole, readRole, writeRole } from './routes/roles/role.ts'

/** Every route below a PKI mount. */
export const table = {
  'LIST roles': listRoles,
  'GET roles/:name': readRole,
  'POST roles/:name': writeRole,
  'PATCH roles/:name': patchRole,
  'DELETE roles/:name': deleteRole,
  'POST roles/:name/explain': explainRole,
} satisfies Readonly<Record<string, Route<PkiContext>>>

export const routes: Routes<PkiContext> = Object.values(table)

interface PkiOptions {
  readonly database: Database
  readonly clock: Clock
  readonly leases: Leases
  /** This node's: certificates, revocation lists and URLs belong to a site. */
  readonly site: string
}

/** The certificate authority. Paths that are not built yet answer `unsupported path`. */
export function createPki(options: PkiOptions): Engine<PkiContext> {
  const { database, clock } = options
  const roles = new Roles(database)
  const certificates = new Certificates(options)
  const revocations = new Revocations(options)
  return {
    type: 'pki',
    routes,
    // There are no issuers and no CSRs to sign yet.
    context: { roles, clock, issuerExists: () => false, readCsr: undefined },
    pristine: (mount) => roles.empty(mount),
    removeSome: async (mount, claim) => {
      if (await certificates.removeSome(mount, claim)) return true
      return database.transaction(async (tx) => {
        await tx.fence(claim.job, claim.fence)
        return (await roles.removeSome(tx, mount)) > 0
      })
    },
    revokeLease: (mount, payload) => revocations.revokeLease(mount, payload),
  }
}
