import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { raw } from '../../../../field.ts'
import { route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { readGivenExtensions, reservedExtensions } from '../../crl/requested/extensions.ts'
import { orderFields, readOrder } from '../../crl/requested/order.ts'
import { mostRevokedCerts, readRevokedCerts } from '../../crl/requested/revokedcerts.ts'
import { listSigner, signedListAnswer, signList } from '../../crl/requested/signing.ts'

const body = Type.Object({
  revoked_certs: raw({ about: 'The entries: serial_number, revocation_time and a list of extensions each.' }),
  extensions: raw({ about: 'Extensions of the list: id, critical and value (base64 of DER) each.' }),
  ...orderFields,
})

export const signRevocationList = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'issuer/:issuer_ref/sign-revocation-list',
  access: 'token',
  about: 'Signs a revocation list with the entries and extensions of the request.',
  // One more than allowed, so that this route itself refuses a longer list.
  longestList: mostRevokedCerts + 1,
  body,
  answers: signedListAnswer,
  async run(call) {
    const { context, mount, params, body } = call
    const order = readOrder(body)
    const extensions = readGivenExtensions(
      body.extensions,
      (reason) => {
        throw badRequest(reason)
      },
      reservedExtensions,
    )
    const able = listSigner(await context.authorities.of(mount), params.issuer_ref ?? '')
    const entries = await readRevokedCerts(body.revoked_certs)
    return signList(call, able, order, { entries, extensions })
  },
})
