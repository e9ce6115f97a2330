import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { Answer, type Call, type Outcome, route } from '../../../../route.ts'
import { parseSerial, withColons } from '../../../../x509/serial.ts'
import type { PkiContext } from '../../context.ts'
import { describeOutcome, revocationAnswer, warningOf } from '../../revocation/describe.ts'
import { readPrivateKey } from '../../revocation/possession.ts'
import { reasonOf } from '../../revocation/reason.ts'
import { readPresented } from '../../revocation/revocable.ts'
import type { Wish } from '../../revocation/revoker.ts'

const fields = {
  serial_number: text({ about: 'Its serial number, hexadecimal, bytes separated by ":" or "-".' }),
  certificate: text({ about: 'The certificate, PEM, instead of its serial number.' }),
  reason: text({ about: 'The reason: a CRLReason of RFC 5280 by its name or number, such as keyCompromise.' }),
}
const body = Type.Object(fields)
type RevokeCall = Call<PkiContext, typeof body>

async function revoke({ context, mount, body, warn }: RevokeCall, wish: Wish): Promise<Outcome> {
  const { serial_number: number = '', certificate: pem = '' } = body
  const certificate = pem === '' ? undefined : await readPresented(pem)
  const serial = certificate?.serial ?? readSerial(number)
  const outcome =
    certificate === undefined
      ? await context.revoker.bySerial(mount, serial, wish)
      : await context.revoker.byCertificate(mount, certificate, wish)
  const warning = warningOf(outcome, withColons(serial))
  if (warning !== undefined) warn(warning)
  return new Answer({ data: describeOutcome(outcome) })
}

/** @throws ApiError 400 unless exactly one of the two is given */
function checkNamed({ serial_number: number = '', certificate = '' }: RevokeCall['body']): void {
  if (number === '' && certificate === '') {
    throw badRequest('The serial number or certificate to revoke must be provided.')
  }
  if (number !== '' && certificate !== '') {
    throw badRequest('Must provide either the certificate or the serial to revoke; not both.')
  }
}

function readSerial(text: string): Buffer {
  const serial = parseSerial(text.trim())
  if (serial !== undefined) return serial
  throw badRequest(
    'serial_number must be at most 20 hexadecimal bytes separated by ":" or "-"; no certificate with such a serial number was found',
  )
}

export const revokeCertificate = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'revoke',
  access: 'token',
  about: 'Revokes a certificate, given by its serial number or as PEM.',
  body,
  answers: revocationAnswer,
  run(call) {
    checkNamed(call.body)
    return revoke(call, { reason: reasonOf(call.body.reason ?? '') })
  },
})

const keyedBody = Type.Object({
  ...fields,
  private_key: text({ about: 'The private key of the certificate, PEM, not encrypted.' }),
})

export const revokeWithKey = route<PkiContext, typeof keyedBody>({
  method: 'POST',
  path: 'revoke-with-key',
  access: 'token',
  about: 'Revokes a certificate for the holder of its private key.',
  body: keyedBody,
  answers: revocationAnswer,
  async run(call) {
    const { private_key: pem = '', reason = '' } = call.body
    checkNamed(call.body)
    if (pem === '') throw badRequest('Must have private key to revoke via the /revoke-with-key path.')
    const wish = { reason: reasonOf(reason) }
    const privateKey = await readPrivateKey(pem)
    try {
      return await revoke(call, { ...wish, privateKey })
    } finally {
      privateKey.fill(0)
    }
  },
})
