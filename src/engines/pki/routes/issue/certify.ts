import type { Static, TObject } from 'typebox'
import type { Call, Outcome } from '../../../../route.ts'
import type { CertificationRequest } from '../../../../x509/request.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import type { Format } from '../../issuing/answer.ts'
import { csrContents, requireSigned } from '../../issuing/csr.ts'
import type { Contents } from '../../issuing/extensions.ts'
import { ableIssuer } from '../../issuing/issuer.ts'
import { issueLeaf } from '../../issuing/leaf.ts'
import { withinIssuer } from '../../issuing/lifetime.ts'
import { decide } from '../../roles/decide.ts'
import type { Decision } from '../../roles/decision.ts'
import { readNameRequest } from '../../roles/request.ts'
import type { Role } from '../../roles/role.ts'
import type { leafFields } from './fields.ts'

/** A certification request that a route has read. */
export interface Requested {
  readonly role: Role
  readonly request: CertificationRequest
  readonly format: Format
  /** Names and times requested by the body. */
  readonly body: Static<TObject<typeof leafFields>>
  /** The contents of the certificate under the role's decision. */
  contents(decision: Decision): Contents
  /** Warnings besides those of the decision. */
  readonly warnings?: readonly string[]
}

/**
 * Makes the certificate for a certification request, as far as the role allows it. @throws ApiError 4xx naming the rule
 */
export async function certify(
  call: Call<PkiContext>,
  { role, request, format, body, contents, warnings = [] }: Requested,
): Promise<Outcome> {
  const { context, mount, params, warn } = call
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? role.issuerRef, 'issuing-certificates')
  const circumstances = circumstancesOf(call)
  const decision = decide(role, readNameRequest(body, csrContents(request)), circumstances)
  requireSigned(request)
  for (const warning of [...decision.warnings, ...warnings]) warn(warning)
  const leased = role.generateLease && !role.noStore
  if (leased) await context.leases.requireRoom(call)
  return issueLeaf(call, {
    ...{ authority, able, format },
    contents: contents(decision),
    spki: request.spki,
    validity: withinIssuer(able.issuer, decision.validity, circumstances.now),
    wish: role,
    stored: !role.noStore,
    leased,
    removeRoots: body.remove_roots_from_chain ?? false,
  })
}
