import { Type } from 'typebox'
import { after } from '../../../../after.ts'
import { data, strings } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, type MaybePromise, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { csrContents, readCsr } from '../../issuing/csr.ts'
import { explain } from '../../roles/decide.ts'
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
})

type ExplainCall = Call<PkiContext, typeof body>

function explainRequest(call: ExplainCall): MaybePromise<Data> {
  const { context, mount, params, body } = call
  const name = params.name ?? ''
  return after(context.roles.get(mount, name), (role) => {
    if (role === undefined) throw badRequest(`unknown role: ${name}`)
    const csr = body.csr ? csrContents(readCsr(body.csr)) : undefined
    const { allowed, checks, warnings } = explain(role, readNameRequest(body, csr), circumstancesOf(call))
    const shown = checks.map(({ subject, value, refusal }) => ({
      subject,
      value,
      allowed: refusal === undefined,
      ...refusal,
    }))
    return { allowed, checks: shown, warnings }
  })
}

export const explainRole = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'roles/:name/explain',
  access: 'token',
  about: 'Tells for every name of a certificate whether the role allows it, and which setting would allow it.',
  body,
  answers: explanation,
  run: explainRequest,
})
