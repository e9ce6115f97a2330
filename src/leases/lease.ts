import { randomUUID } from 'node:crypto'
import { SignedIn } from '../auth/caller.ts'
import { randomText } from '../auth/credential.ts'
import { SPENT } from '../auth/token.ts'
import { badRequest } from '../errors.ts'
import type { Call, Lease } from '../route.ts'
import { column, defineTable, type Row } from '../store/table.ts'

/**
 * What was given for a time, and must be taken back when it ends or when its token goes. Sealed: an edited payload would
 * have the server revoke somebody else's certificate under its own signature, an edited token, end or maximum would let a
 * credential outlive whom it was given to. `attempts` above 0 says that taking it back has begun: it is renewed no more.
 * `dueAt` is when the job looks at it: the lease's end, then later with every attempt that failed.
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
 * As much of lease rows as is read unverified: enough to find those that are to be taken back, never to decide by. Edited
 * values must not keep the others from being found, so that nothing here can fail to be read.
 */
export const leaseTraces = defineTable(
  'leases',
  { id: column.text(), leaseId: column.text(), mount: column.text(), token: column.text(), dueAt: column.text() },
  { sealed: false },
)

/** A row to insert together with what the lease is for. */
export type NewLease = Omit<LeaseRow, 'namespace' | 'rev' | 'epoch'>

/** What an engine gives a lease for. */
export interface LeaseRequest {
  /** What the engine needs to take it back, and nothing secret. */
  readonly payload: Readonly<Record<string, unknown>>
  readonly ttlSeconds: number
  /** Longest life, renewals included. */
  readonly maxTtlSeconds: number
  readonly renewable: boolean
}

const RANDOM_LENGTH = 24
const MAX_LENGTH = 700

/**
 * The row of a new lease, whose id is the request's path and 24 random characters.
 * @param now milliseconds
 * @throws ApiError 400 for a caller whose token goes with this very request, or a path too long to be kept
 */
export function prepareLease(
  { mount, path, caller }: Pick<Call<unknown>, 'mount' | 'path' | 'caller'>,
  { payload, ttlSeconds, maxTtlSeconds, renewable }: LeaseRequest,
  now: number,
): NewLease {
  const { row } = SignedIn.of(caller)
  if (row.numUses === SPENT) {
    throw badRequest('Secret cannot be returned; token had one use left, so its lease would be revoked with it')
  }
  const leaseId = `${mount.path}${path}/${randomText(RANDOM_LENGTH)}`
  if (leaseId.length > MAX_LENGTH)
    throw badRequest(`the path is too long for a lease, whose id may have ${MAX_LENGTH} characters`)
  const expiresAt = now + ttlSeconds * 1000
  return {
    ...{ id: randomUUID(), mount: mount.uuid, leaseId, token: row.id, payload, renewable, ttlSeconds, maxTtlSeconds },
    ...{ issuedAt: now, expiresAt, lastRenewalAt: null, attempts: 0, dueAt: expiresAt },
  }
}

/** The envelope's fields of a lease. Rounded up: one just made has its whole ttl. */
export const shownLease = (row: Pick<LeaseRow, 'leaseId' | 'renewable' | 'expiresAt'>, now: number): Lease => ({
  id: row.leaseId,
  renewable: row.renewable,
  durationSeconds: secondsLeft(row, now),
})

/** 0 for a lease that has ended and is still being taken back. */
export const secondsLeft = ({ expiresAt }: Pick<LeaseRow, 'expiresAt'>, now: number): number =>
  Math.max(0, Math.ceil((expiresAt - now) / 1000))
