import { Type } from 'typebox'
import { after } from '../../../../after.ts'
import { data, strings } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, type MaybePromise, route } from '../../../../route.ts'
import type { CertificationRequest } from '../../../../x509/request.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { csrContents, leftOut, readCsr, requireSigned } from '../../issuing/csr.ts'
import { judgeDecision } from '../../issuing/trial.ts'
import { decide, type Explanation, explain } from '../../roles/decide.ts'
import type { Circumstances } from '../../roles/decision.ts'
import { type NameRequest, nameFields, readNameRequest } from '../../roles/request.ts'
import type { Role } from '../../roles/role.ts'

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
    const csr = body.csr ? readCsr(body.csr) : undefined
    if (csr !== undefined) requireSigned(csr)
    const request = readNameRequest(body, csr && csrContents(csr))
    const { checks, warnings } = complete(role, request, circumstancesOf(call), csr)
    const shown = checks.map(({ subject, value, refusal }) => ({
      subject,
      value,
      allowed: refusal === undefined,
      ...refusal,
    }))
    return { allowed: shown.every(({ allowed }) => allowed), checks: shown, warnings }
  })
}

type Explained = Pick<Explanation, 'checks' | 'warnings'>

/**
 * What the role says, and if it refuses nothing, what signing would say of the certificate. Its warnings need a key:
 * for issue there is none yet.
 */
function complete(
  role: Role,
  request: NameRequest,
  circumstances: Circumstances,
  csr: CertificationRequest | undefined,
): Explained {
  const { allowed, checks, warnings } = explain(role, request, circumstances)
  if (!allowed) return { checks, warnings }
  const judgement = judgeDecision(decide(role, request, circumstances), csr?.spki)
  if (judgement.refusal !== undefined) {
    const refusal = { text: judgement.refusal, rule: 'a certificate must be valid under RFC 5280, and not too large' }
    return { checks: [...checks, { subject: 'certificate', value: '', refusal }], warnings }
  }
  if (csr === undefined) return { checks, warnings }
  const omission = role.useCsrSans ? leftOut(csr) : undefined
  return { checks, warnings: [...warnings, ...(omission === undefined ? [] : [omission]), ...judgement.warnings] }
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
