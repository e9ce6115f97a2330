import { Type } from 'typebox'
import { text } from '../../../../field.ts'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { leafAnswer, readFormat } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { leftOut, readCsr } from '../../issuing/csr.ts'
import { requireRole } from '../../issuing/role.ts'
import { certify } from './certify.ts'
import { leafFields } from './fields.ts'

const body = Type.Object({ csr: text({ about: 'The certification request, PEM.' }), ...leafFields })
type SignCall = Call<PkiContext, typeof body>

async function sign(call: SignCall): Promise<Outcome> {
  const { context, mount, params, body } = call
  const role = await requireRole(context, mount, params.role ?? '')
  const format = readFormat(body.format)
  const request = readCsr(body.csr)
  const omission = role.useCsrSans ? leftOut(request) : undefined
  const warnings = omission === undefined ? [] : [omission]
  return certify(call, { role, request, format, body, contents: contentsOf, warnings })
}

const signRoute = (path: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a certificate for the key of a certification request.',
    body,
    answers: leafAnswer,
    run: sign,
  })

export const signCertificate = signRoute('sign/:role')
export const signByIssuer = signRoute('issuer/:issuer_ref/sign/:role')
