import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { describeIssuer, issuerAnswer } from '../../issuers/describe.ts'
import { revokeIssuer } from '../../revocation/revokeissuer.ts'

type IssuerCall = Call<PkiContext, typeof noFields>

async function run({ context, mount, params, warn }: IssuerCall): Promise<Data> {
  const { authority, issuer } = await revokeIssuer(context, mount, params.issuer_ref ?? '', warn)
  return describeIssuer(authority, issuer)
}

export const revokeIssuerByReference = route<PkiContext, typeof noFields>({
  method: 'POST',
  path: 'issuer/:issuer_ref/revoke',
  access: 'token',
  about: 'Revokes an issuer permanently: it issues no more, and its parent’s list names it.',
  body: noFields,
  answers: issuerAnswer,
  run,
})
