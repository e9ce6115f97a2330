import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { describeIssuer } from '../../issuers/describe.ts'
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
  about: 'Revokes an issuer for good: it issues no more, and the list of whoever signed it names it.',
  body: noFields,
  run,
})
