import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { list, wholeBody } from '../../../../field.ts'
import { route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { combineLists } from '../../crl/requested/combining.ts'
import { orderFields, readOrder } from '../../crl/requested/order.ts'
import { listSigner, signedListAnswer, signList } from '../../crl/requested/signing.ts'

const body = Type.Object({
  crls: list({ about: 'The lists to combine, PEM, each signed by the issuer.', longest: wholeBody }),
  ...orderFields,
})

export const resignCrls = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'issuer/:issuer_ref/resign-crls',
  access: 'token',
  about: 'Combines revocation lists that one issuer signed into one list.',
  body,
  answers: signedListAnswer,
  async run(call) {
    const { context, mount, params, body, warn } = call
    const order = readOrder(body)
    if (body.crls === undefined) throw badRequest('missing crls parameter')
    const able = listSigner(await context.authorities.of(mount), params.issuer_ref ?? '')
    const entries = await combineLists(body.crls, able.issuer.certificate, warn)
    return signList(call, able, order, { entries, extensions: [] })
  },
})
