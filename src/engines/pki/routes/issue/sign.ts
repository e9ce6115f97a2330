import { Type } from 'typebox'
import { text } from '../../../../field.ts'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { readFormat } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { csrContents, leftOut, readCsr, requireSigned } from '../../issuing/csr.ts'
import { ableIssuer } from '../../issuing/issuer.ts'
import { issueLeaf } from '../../issuing/leaf.ts'
import { withinIssuer } from '../../issuing/lifetime.ts'
import { requireRole } from '../../issuing/role.ts'
import { decide } from '../../roles/decide.ts'
import { readNameRequest } from '../../roles/request.ts'
import { leafFields } from './fields.ts'

const body = Type.Object({ csr: text({ about: 'The certification request, PEM.' }), ...leafFields })
type SignCall = Call<PkiContext, typeof body>

async function sign(call: SignCall): Promise<Outcome> {
  const { context, mount, params, body, warn } = call
  const role = await requireRole(context, mount, params.role ?? '')
  const format = readFormat(body.format)
  const request = readCsr(body.csr)
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? role.issuerRef, 'issuing-certificates')
  const circumstances = circumstancesOf(call)
  const decision = decide(role, readNameRequest(body, csrContents(request)), circumstances)
  requireSigned(request)
  const omission = role.useCsrSans ? leftOut(request) : undefined
  for (const warning of [...decision.warnings, ...(omission ? [omission] : [])]) warn(warning)
  return issueLeaf(call, {
    ...{ authority, able, format },
    contents: contentsOf(decision),
    spki: request.spki,
    validity: withinIssuer(able.issuer, decision.validity, circumstances.now),
    wish: role,
    stored: !role.noStore,
    leased: role.generateLease && !role.noStore,
    removeRoots: body.remove_roots_from_chain ?? false,
  })
}

const signRoute = (path: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a certificate for the key of a certification request.',
    body,
    run: sign,
  })

export const signCertificate = signRoute('sign/:role')
export const signByIssuer = signRoute('issuer/:issuer_ref/sign/:role')
