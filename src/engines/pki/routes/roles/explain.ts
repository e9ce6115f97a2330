import { Type } from 'typebox'
import { after } from '../../../../after.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, type MaybePromise, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { csrContents, readCsr } from '../../issuing/csr.ts'
import { explain } from '../../roles/decide.ts'
import { nameFields, readNameRequest } from '../../roles/request.ts'

const body = Type.Object({
  ...nameFields,
  csr: text({ about: 'A CSR in PEM, to explain what sign would say; absent for issue.' }),
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
  about: 'Says of every name that a certificate would have whether the role allows it, and which setting would.',
  body,
  run: explainRequest,
})
