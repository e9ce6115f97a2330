import { Type } from 'typebox'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { leafAnswer, readFormat } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { ableIssuer } from '../../issuing/issuer.ts'
import { issueLeaf } from '../../issuing/leaf.ts'
import { withinIssuer } from '../../issuing/lifetime.ts'
import { requireRole } from '../../issuing/role.ts'
import { keyKind } from '../../keys/keytype.ts'
import { privateKeyOf } from '../../keys/privatekey.ts'
import { decide } from '../../roles/decide.ts'
import { readNameRequest } from '../../roles/request.ts'
import { leafFields, privateKeyFormat } from './fields.ts'

const body = Type.Object({ ...leafFields, private_key_format: privateKeyFormat })
type IssueCall = Call<PkiContext, typeof body>

/** Everything is decided before a key is made. */
async function issue(call: IssueCall): Promise<Outcome> {
  const { context, mount, params, body, warn } = call
  const role = await requireRole(context, mount, params.role ?? '')
  const format = readFormat(body.format)
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? role.issuerRef, 'issuing-certificates')
  const circumstances = circumstancesOf(call)
  const decision = decide(role, readNameRequest(body), circumstances)
  for (const warning of decision.warnings) warn(warning)
  const validity = withinIssuer(able.issuer, decision.validity, circumstances.now)
  const { algorithm, type } = keyKind(role.keyType, role.keyBits)
  const leased = role.generateLease && !role.noStore
  if (leased) await context.leases.requireRoom(call)
  const pair = await context.transients.make(algorithm)
  try {
    return await issueLeaf(call, {
      ...{ authority, able, validity, format },
      contents: contentsOf(decision),
      spki: pair.spki,
      wish: role,
      stored: !role.noStore,
      leased,
      removeRoots: body.remove_roots_from_chain ?? false,
      privateKey: privateKeyOf(pair.pkcs8, type, body.private_key_format),
    })
  } finally {
    pair.pkcs8.fill(0)
  }
}

const issueRoute = (path: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a key and a certificate for it; the key is returned and not stored.',
    body,
    answers: leafAnswer,
    run: issue,
  })

export const issueCertificate = issueRoute('issue/:role')
export const issueByIssuer = issueRoute('issuer/:issuer_ref/issue/:role')
