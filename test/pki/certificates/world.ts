import { randomBytes, randomUUID } from 'node:crypto'
import { TokenCaller } from '../../../src/auth/caller.ts'
import type { TokenRow } from '../../../src/auth/token.ts'
import { Tokens } from '../../../src/auth/tokens.ts'
import type { Engine } from '../../../src/engine.ts'
import { Authorities, createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import { Certificates, type NewCertificate } from '../../../src/engines/pki/certificates/certificates.ts'
import { CertificateLists } from '../../../src/engines/pki/certificates/listing.ts'
import type { RevocationRow } from '../../../src/engines/pki/certificates/tables.ts'
import { requestJobs } from '../../../src/engines/pki/revocation/answering.ts'
import { Associations } from '../../../src/engines/pki/revocation/associations.ts'
import type { Publication } from '../../../src/engines/pki/revocation/publication.ts'
import { RevocationRequests } from '../../../src/engines/pki/revocation/requests.ts'
import { type NewRevocation, Revocations } from '../../../src/engines/pki/revocation/revocations.ts'
import { Revoker } from '../../../src/engines/pki/revocation/revoker.ts'
import { engineRevoker, withLeases } from '../../../src/leases/engines.ts'
import { Leases } from '../../../src/leases/leases.ts'
import { createLog } from '../../../src/log.ts'
import type { Mount } from '../../../src/route.ts'
import { createWorld, type Node, service, type World } from '../../auth/world.ts'

export type CertificateWorld = Awaited<ReturnType<typeof createCertificateWorld>>
export type CertificateNode = ReturnType<typeof nodeAt>

export const minute = 60_000

export const newMount = (): Mount => ({ uuid: randomUUID(), path: 'pki/', type: 'pki', config: {} })

/** One token, one database, workers of the site `default`, and a PKI mount. */
export async function createCertificateWorld(nodes = 1) {
  const world = await createWorld(nodes)
  const mount = newMount()
  const made = world.nodes.map((node) => nodeAt(node, world, mount))
  const [node] = made
  if (node === undefined) throw new Error('a world has at least one node')
  const { database } = node
  await database.transaction((tx) => createAuthority({ database, clock: world.clock }, tx, mount.uuid))
  /** One more worker, possibly of another site or over another connection; it caches nothing until it is started. */
  const join = async ({ site = 'default', url = world.url } = {}) => nodeAt(await world.join(url), world, mount, site)
  const { sql, clock, url, rootToken } = world
  return {
    node,
    nodes: made,
    mount,
    join,
    sql,
    clock,
    url,
    rootToken,
    [Symbol.asyncDispose]: world[Symbol.asyncDispose],
  }
}

function nodeAt({ database }: Node, { keys, clock }: World, mount: Mount, site = 'default') {
  const tokens = new Tokens({ database, keys, clock, log: createLog('silent'), epoch: 1, leases: () => leases })
  const engines = new Map<string, Engine>()
  const revokeInEngine = engineRevoker(async () => [mount], engines)
  const log = createLog('silent')
  const leases = new Leases({ database, clock, log, tokens, revokeInEngine, removed: () => false })
  const options = { database, clock, leases, site }
  const certificates = new Certificates(options)
  const lists = new CertificateLists(options)
  const revocations = new Revocations({ ...options, log })
  const authorities = new Authorities(options)
  const requests = new RevocationRequests(options)
  const published: RevocationRow[] = []
  const rebuilt: string[] = []
  /** Records the revocations to publish: nothing here signs lists. */
  const publication: Publication = {
    async revoked(_, row) {
      published.push(row)
      return undefined
    },
    async rebuild({ uuid }) {
      rebuilt.push(uuid)
      return []
    },
  }
  const parts = { ...options, log, authorities, certificates, revocations, requests, publication }
  const revoker = new Revoker(parts)
  const associations = new Associations(parts)
  const jobs = requestJobs({ ...parts, revoker })
  // The part of the engine that keeps certificates: nothing here signs, so there is no token.
  const keeping: Engine = {
    ...{ type: 'pki', context: undefined, routes: [] },
    removeSome: (removed, claim) => certificates.removeSome(removed, claim),
    revokeLease: (leased, payload) => revoker.byLease(leased, payload),
  }
  const engine = withLeases(keeping, leases)
  engines.set(engine.type, engine)

  const fresh = (more: Partial<NewCertificate> = {}): NewCertificate => ({
    mount: mount.uuid,
    serial: randomBytes(20).toString('hex'),
    issuer: issuerId,
    der: randomBytes(700),
    notAfter: clock.wall() + 60 * minute,
    ...more,
  })

  /** Stores a certificate with a lease of this token, as a route does. */
  async function issue(row: TokenRow, more: Partial<NewCertificate> = {}) {
    const certificate = fresh(more)
    const caller = new TokenCaller(row, 'not looked at', String)
    const lease = leases.prepare({ mount, path: 'issue/web', caller }, certificates.leaseRequest(certificate))
    const stored = await certificates.store(certificate, lease)
    return { certificate: stored, lease: await leases.confirm(lease) }
  }
  /** The revocation of a certificate, for the list of the world's own CRL issuer unless another is named. */
  const revocationOf = (
    { mount, serial, issuer, notAfter }: NewCertificate,
    more: Partial<NewRevocation> = {},
  ): NewRevocation => ({ mount, serial, issuer, notAfter, site, crlIssuer, reason: null, ...more })
  const revoke = (certificate: NewCertificate, more?: Partial<NewRevocation>) =>
    revocations.record(revocationOf(certificate, more))
  const token = async () => (await tokens.create(service(null, { ttlSeconds: 100_000 }))).row
  return {
    ...{ database, tokens, leases, engine, certificates, lists, fresh, issue, token, authorities },
    ...{ revocations, revoker, revoke, revocationOf, requests, jobs, associations, published, rebuilt },
  }
}

const issuerId = '33333333-3333-7333-8333-333333333333'
/** The CRL issuer whose list names the revocations made here. */
export const crlIssuer = randomBytes(32).toString('hex')
