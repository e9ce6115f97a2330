import { decide } from '../../../src/engines/pki/roles/decide.ts'
import type { Circumstances, Decision } from '../../../src/engines/pki/roles/decision.ts'
import type { RoleSettings } from '../../../src/engines/pki/roles/fields.ts'
import type { CsrContents, NameRequest } from '../../../src/engines/pki/roles/request.ts'
import { createRole } from '../../../src/engines/pki/roles/role.ts'
import { ApiError } from '../../../src/errors.ts'

/** Asking a role, without a server: the rules are pure. */

export const now = Date.UTC(2026, 10, 22, 8, 0, 0, 250)

export const circumstances: Circumstances = {
  now,
  defaultTtlSeconds: 2_764_800,
  maxTtlSeconds: 2_764_800,
  identity: { displayName: 'ada', metadata: { team: 'blue.example.com', star: '*', nothing: '' } },
}

export const request = (asked: Partial<NameRequest>): NameRequest => ({
  commonName: '',
  altNames: [],
  ipSans: [],
  uriSans: [],
  otherSans: [],
  serialNumber: '',
  userIds: [],
  excludeCnFromSans: false,
  ttlSeconds: 0,
  notAfter: '',
  ...asked,
})

export const csr = (contents: Partial<CsrContents>): CsrContents => ({
  key: { type: 'rsa', bits: 2048 },
  commonName: '',
  serialNumbers: [],
  userIds: [],
  dns: [],
  email: [],
  ip: [],
  uri: [],
  other: [],
  extensions: [],
  ...contents,
})

/** The decision of a role `web` with these settings. */
export const ask = (
  settings: Partial<RoleSettings>,
  asked: Partial<NameRequest>,
  at: Partial<Circumstances> = {},
): Decision => decide(createRole('web', settings), request(asked), { ...circumstances, ...at })

/** The lines of the refusal; empty when the role allows the request. */
export function refusal(...asked: Parameters<typeof ask>): readonly string[] {
  try {
    ask(...asked)
    return []
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.messages
    throw error
  }
}
