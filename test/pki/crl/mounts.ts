import { hash, randomUUID } from 'node:crypto'
import { Authorities, createAuthority } from '../../../src/engines/pki/authority/authorities.ts'
import { type IssuerUsage, issuersTable, issuerUsages, keysTable } from '../../../src/engines/pki/authority/tables.ts'
import type { Alarm } from '../../../src/engines/pki/crl/alarm.ts'
import { type CrlSettings, defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import type { Shard } from '../../../src/engines/pki/crl/shards/shard.ts'
import { Crls } from '../../../src/engines/pki/publication/crls.ts'
import { Upkeep } from '../../../src/engines/pki/publication/upkeep.ts'
import { mountsTable } from '../../../src/request/mounts/mount.ts'
import { MovableClock } from '../../auth/world.ts'
import { type Cluster, log } from '../../keys/support.ts'
import { type Ca, createCa, nodeAt, read } from './world.ts'

/** One worker of a site with its own clock, which signs for the CAs that it is given. */
export function workerAt({ place }: Cluster, site = 'default') {
  const { database } = place
  const node = nodeAt(database, { site, clock: new MovableClock() })
  const { builder, clock } = node
  const authorities = new Authorities({ database, clock, site })
  const cas = new Map<string, Ca>()
  const of = ({ id }: { readonly id: string }) => {
    const ca = cas.get(id)
    if (ca === undefined) throw new Error('the key of this CA is away')
    return ca.signer
  }
  const onAlarm = (alarm: Alarm) => void node.alarms.push(alarm)
  const options = { database, clock, log, authorities, builder, site, onAlarm, signers: { of } }
  const crls = new Crls(options)
  return { ...node, authorities, cas, crls, upkeep: new Upkeep({ ...options, crls }) }
}
export type Worker = ReturnType<typeof workerAt>

interface Wanted {
  readonly settings?: Partial<CrlSettings>
  readonly usages?: readonly IssuerUsage[]
  readonly ca?: Ca
}

/** A mount with one CA, whose key these workers have. */
export async function createMount(
  cluster: Cluster,
  workers: readonly Worker[],
  { settings = {}, usages = issuerUsages, ca: given }: Wanted = {},
) {
  const [worker] = workers
  if (worker === undefined) throw new Error('a mount has a worker')
  const { database, authorities, clock } = worker
  const ca = given ?? (await createCa(cluster))
  const mount = randomUUID()
  const { certificate } = ca
  await database.transaction(async (tx) => {
    await database.table(mountsTable).insert(tx, {
      ...{ id: mount, path: `${mount}/`, type: 'pki', description: '', accessor: mount, config: {} },
      ...{ local: false, sealWrap: false, touched: true, createdAt: clock.wall() },
    })
    await createAuthority({ database, clock }, tx, mount)
  })
  const { result: key } = await authorities.change({ uuid: mount }, async (tx) => {
    const fingerprint = hash('sha256', certificate.spki, 'buffer')
    const key = await database.table(keysTable).insert(tx, {
      ...{ mount, type: 'ec', bits: 256, createdAt: clock.wall(), material: 'm', fingerprint },
    })
    const issuer = await database.table(issuersTable).insert(tx, {
      ...{ mount, keyId: key.id, certificate: certificate.der, leafNotAfterBehavior: 'err', usages },
      ...{ fingerprint: hash('sha256', certificate.der, 'buffer'), revocationSignatureAlgorithm: '' },
      ...{ changedAt: clock.wall(), createdAt: clock.wall() },
    })
    const crl = { ...defaultCrlSettings, ...settings }
    return { settings: { defaultIssuer: issuer.id, crl }, result: key }
  })
  for (const { cas } of workers) cas.set(key.id, ca)

  /** A list as this worker serves it; undefined while there is none. */
  async function list(
    at: Worker,
    kind: 'complete' | 'delta' = 'complete',
    scope: 'local' | 'unified' = 'local',
    portion?: Shard,
  ) {
    const authority = await at.authorities.of({ uuid: mount })
    const issuer = authority.defaultIssuer
    if (issuer === undefined) throw new Error('the mount has an issuer')
    const found = await at.crls.find({ uuid: mount }, authority, issuer, { kind, scope, portion })
    return found && read((await found.der()) as Buffer, ca)
  }
  return { mount, ca, key, list }
}
