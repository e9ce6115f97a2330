import type { RevocationRow } from '../../../../src/engines/pki/certificates/tables.ts'
import { shardNumber } from '../../../../src/engines/pki/crl/shards/shard.ts'
import type { CrlRow, Scope } from '../../../../src/engines/pki/crl/tables.ts'
import type { ShardSet } from '../../../../src/engines/pki/crl/target.ts'
import { saved } from '../saved.ts'
import type { Worker } from '../worker.ts'
import { read } from '../world.ts'

export const setOf = (of: number): ShardSet => ({ of, urls: [`http://crl.example/${of}/{{shard}}`] })

export const placeOf = (serial: string, of: number): number => shardNumber(Buffer.from(serial, 'hex'), of)

/** The published shards of a count, each verified and read. */
export async function shardsOut(worker: Worker, of: number, scope: Scope = 'local') {
  const { node, ca, mount } = worker
  const site = scope === 'unified' ? '' : 'default'
  const name = { mount, crlIssuer: ca.crlIssuer, site, scope, kind: 'complete' } as const
  const known = await worker.manifest()
  const rows = await node.database.snapshot((q) => node.builder.shardLists.all(q, known, name, of))
  return Promise.all(rows.map(async (row) => ({ row, ...read(await node.whole(row as CrlRow), ca) })))
}

/** How many of these revocations each shard of a count lists. */
export const placesOf = (rows: readonly (RevocationRow | undefined)[], of: number): number[] =>
  Array.from({ length: of }, (_, index) => rows.filter((row) => placeOf(row?.serial ?? '', of) === index + 1).length)

/**
 * Builds the complete list as a version without shards does: those of the count stay in rows and manifest as they were.
 */
export async function oldBuild(worker: Worker, of: number): Promise<void> {
  const { cluster, node, ca } = worker
  const where = `WHERE crl_issuer = UNHEX(?) AND shards = ${of}`
  const putBack = await saved(cluster.place, 'pki_crls', where, ca.crlIssuer)
  const shards = Object.entries((await worker.manifest()).published).filter(([key]) => key.endsWith(`-of-${of}`))
  await worker.build({ shards: [] })
  await putBack()
  await node.builder.manifests.change(ca.crlIssuer, async (_tx, { published }) => ({
    after: { published: { ...published, ...Object.fromEntries(shards) } },
    result: undefined,
  }))
}
