import { randomUUIDv7 } from 'node:crypto'
import { TokenCaller } from '../auth/caller.ts'
import { secondsLeft } from '../auth/lifetime.ts'
import { spentUses } from '../auth/token.ts'
import { randomText } from '../crypto/randomtext.ts'
import { badRequest } from '../errors.ts'
import type { Call, Lease } from '../route.ts'
import { column, defineTable, type Row } from '../store/table.ts'

/**
 * Leases, revoked when they expire or when their token is revoked. Sealed: an edited payload would make the server
 * revoke another client's certificate under its own signature; an edited token, expiry or maximum would let a
 * credential outlive its holder. `attempts` above 0 means that revocation has begun: such a lease is not renewed.
 * `dueAt` is the time of the next attempt: the expiry, then later after each failure.
 */
export const leaseTable = defineTable(
  'leases',
  {
    leaseId: column.text(),
    token: column.text(),
    payload: column.json<Readonly<Record<string, unknown>>>(),
    renewable: column.boolean(),
    ttlSeconds: column.integer(),
    maxTtlSeconds: column.integer(),
    issuedAt: column.integer(),
    expiresAt: column.integer(),
    lastRenewalAt: column.integer().nullable(),
    attempts: column.integer(),
    dueAt: column.integer(),
  },
  { sealed: true },
)

export type LeaseRow = Row<typeof leaseTable>

/**
 * The columns of lease rows that are read unverified: enough to find candidates for revocation, never to decide. An
 * edited value cannot fail to parse and hide the other rows.
 */
export const leaseTraces = defineTable(
  'leases',
  { id: column.text(), leaseId: column.text(), mount: column.text(), token: column.text(), dueAt: column.loose() },
  { sealed: false },
)

/** Ids for listings: unverified. */
export const leaseNames = defineTable('leases', { leaseId: column.text(), mount: column.text() }, { sealed: false })

/** The count of leases, kept by every transaction that stores or removes some. */
export const leaseTally = 'leases'

/** The count of one mount's leases. @param mount its uuid */
export const mountTally = (mount: string): string => `${leaseTally}-${mount}`

/** A row to insert in the transaction that stores the leased object. */
export type NewLease = Omit<LeaseRow, 'namespace' | 'rev' | 'epoch'>

/** A lease requested by an engine. */
export interface LeaseRequest {
  /** Passed to the engine's revokeLease; holds no secret. */
  readonly payload: Readonly<Record<string, unknown>>
  readonly ttlSeconds: number
  /** Longest life, renewals included. */
  readonly maxTtlSeconds: number
  readonly renewable: boolean
}

const randomLength = 24
const maxIdLength = 700

/**
 * The row of a new lease, whose id is the request's path and 24 random characters.
 * @param now milliseconds
 * @throws ApiError 400 for a caller whose token ends with this very request, or a path too long to store
 */
export function prepareLease(
  { mount, path, caller }: Pick<Call<unknown>, 'mount' | 'path' | 'caller'>,
  { payload, ttlSeconds, maxTtlSeconds, renewable }: LeaseRequest,
  now: number,
): NewLease {
  const { row } = TokenCaller.of(caller)
  if (row.numUses === spentUses) {
    throw badRequest('Secret cannot be returned; token had one use left, so its lease would be revoked with it')
  }
  const leaseId = `${mount.path}${path}/${randomText(randomLength)}`
  if (leaseId.length > maxIdLength)
    throw badRequest(`the path is too long for a lease, whose id may have ${maxIdLength} characters`)
  const expiresAt = now + ttlSeconds * 1000
  return {
    ...{ id: randomUUIDv7(), mount: mount.uuid, leaseId, token: row.id, payload, renewable, ttlSeconds, maxTtlSeconds },
    ...{ issuedAt: now, expiresAt, lastRenewalAt: null, attempts: 0, dueAt: expiresAt },
  }
}

/** The envelope's lease fields. */
export const describeLease = (row: Pick<LeaseRow, 'leaseId' | 'renewable' | 'expiresAt'>, now: number): Lease => ({
  id: row.leaseId,
  renewable: row.renewable,
  durationSeconds: secondsLeft(row.expiresAt, now),
})
