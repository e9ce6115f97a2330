import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { integer, text } from '../../../../field.ts'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { readFormat } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { ableIssuer } from '../../issuing/issuer.ts'
import { issueLeaf } from '../../issuing/leaf.ts'
import { withinIssuer } from '../../issuing/lifetime.ts'
import { requireRole } from '../../issuing/role.ts'
import { type KeyKind, keyKind } from '../../keys/keytype.ts'
import { privateKeyOf } from '../../keys/privatekey.ts'
import { decide } from '../../roles/decide.ts'
import { readNameRequest } from '../../roles/request.ts'
import type { Role } from '../../roles/role.ts'
import { leafFields, privateKeyFormat } from './fields.ts'

const body = Type.Object({
  ...leafFields,
  private_key_format: privateKeyFormat,
  key_type: text({ about: 'Type of the key, where the role says any.' }),
  key_bits: integer({ about: 'Size of the key, where the role says any.' }),
})
type IssueCall = Call<PkiContext, typeof body>

/** @throws ApiError 400 */
function kindFor(role: Role, { body, warn }: IssueCall): KeyKind {
  const { key_type: type, key_bits: bits } = body
  if (role.keyType !== 'any') {
    if (type || bits) warn('parameters key_type and key_bits ignored as role had specific values')
    return keyKind(role.keyType, role.keyBits)
  }
  if (type) return keyKind(type, bits)
  throw badRequest(
    'role key type "any" not allowed for issuing certificates without providing key_type and/or key_bits request parameters',
  )
}

/** Everything is decided before a key is made. */
async function issue(call: IssueCall): Promise<Outcome> {
  const { context, mount, params, body, warn } = call
  const role = await requireRole(context, mount, params.role ?? '')
  const format = readFormat(body.format)
  const kind = kindFor(role, call)
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? role.issuerRef, 'issuing-certificates')
  const circumstances = circumstancesOf(call)
  // A role for any key has been told which.
  const decided = { ...role, keyType: kind.type, keyBits: kind.bits }
  const decision = decide(decided, readNameRequest(body), circumstances)
  for (const warning of decision.warnings) warn(warning)
  const validity = withinIssuer(able.issuer, decision.validity, circumstances.now)
  const pair = await context.transients.make(kind.algorithm)
  try {
    return await issueLeaf(call, {
      ...{ authority, able, validity, format },
      contents: contentsOf(decision),
      spki: pair.spki,
      wish: role,
      stored: !role.noStore,
      leased: role.generateLease && !role.noStore,
      removeRoots: body.remove_roots_from_chain ?? false,
      privateKey: privateKeyOf(pair.pkcs8, kind.type, body.private_key_format),
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
    about: 'Makes a key and a certificate for it; the key is handed out and kept nowhere.',
    body,
    run: issue,
  })

export const issueCertificate = issueRoute('issue/:role')
export const issueByIssuer = issueRoute('issuer/:issuer_ref/issue/:role')
