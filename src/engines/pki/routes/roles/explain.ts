import { Type } from 'typebox'
import { data, strings } from '../../../../answers.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { csrContents, readCsr, requireSigned } from '../../issuing/csr.ts'
import { rehearse } from '../../issuing/rehearsal.ts'
import { requireRole } from '../../issuing/role.ts'
import { nameFields, readNameRequest } from '../../roles/request.ts'

const explanation = data(
  Type.Object({
    allowed: Type.Boolean(),
    checks: Type.Array(
      Type.Object({
        subject: Type.String(),
        value: Type.String(),
        allowed: Type.Boolean(),
        text: Type.Optional(Type.String()),
        rule: Type.Optional(Type.String()),
        setting: Type.Optional(Type.String()),
      }),
    ),
    warnings: strings,
  }),
)

const body = Type.Object({
  ...nameFields,
  csr: text({ about: 'A CSR in PEM, to explain the answer of sign; absent for issue.' }),
  issuer_ref: text({ about: 'The issuer that is to sign, by name, id or "default"; absent for that of the role.' }),
})

type ExplainCall = Call<PkiContext, typeof body>

async function explainRequest(call: ExplainCall): Promise<Data> {
  const { context, mount, params, body } = call
  const role = await requireRole(context, mount, params.name ?? '')
  const csr = body.csr ? readCsr(body.csr) : undefined
  if (csr !== undefined) requireSigned(csr)
  const { allowed, checks, warnings } = rehearse({
    ...{ role, csr, circumstances: circumstancesOf(call) },
    request: readNameRequest(body, csr && csrContents(csr)),
    authority: await context.authorities.of(mount),
    reference: body.issuer_ref ?? role.issuerRef,
  })
  const shown = checks.map(({ subject, value, refusal }) => ({
    subject,
    value,
    allowed: refusal === undefined,
    ...refusal,
  }))
  return { allowed, checks: shown, warnings }
}

export const explainRole = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'roles/:name/explain',
  access: 'token',
  about: 'Tells for every name of a certificate whether role and issuer allow it, and which setting would.',
  body,
  answers: explanation,
  run: explainRequest,
})
