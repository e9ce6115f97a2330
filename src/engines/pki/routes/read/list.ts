import { Type } from 'typebox'
import { absent, badRequest } from '../../../../errors.ts'
import { integer, text, time } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { parseSerial, withColons } from '../../../../x509/serial.ts'
import { issuerOf } from '../../authority/references.ts'
import { describeStored } from '../../certificates/describe.ts'
import type { CertificateRow } from '../../certificates/tables.ts'
import type { PkiContext } from '../../context.ts'
import { pageFields } from '../../input/page.ts'

type ListCall = Call<PkiContext, typeof pageFields>

/** @param serial in hexadecimal */
const shown = (serial: string): string => withColons(Buffer.from(serial, 'hex'))

/** @throws ApiError 400 */
function cursorOf(after: string | undefined): { after?: string } {
  if (!after) return {}
  const serial = parseSerial(after)
  if (serial === undefined) throw badRequest('after: a serial number is hexadecimal, its bytes separated by ":" or "-"')
  return { after: serial.toString('hex') }
}

async function list({ context, mount, body }: ListCall): Promise<Data> {
  const { after } = cursorOf(body.after)
  const limit = body.limit && body.limit > 0 ? body.limit : Number.POSITIVE_INFINITY
  const keys: string[] = []
  for await (const page of context.lists.all(mount.uuid, after)) {
    for (const serial of page) if (keys.length < limit) keys.push(shown(serial))
    if (keys.length >= limit) break
  }
  if (keys.length === 0) throw absent()
  return { keys }
}

export const listCertificates = route<PkiContext, typeof pageFields>({
  method: 'LIST',
  path: 'certs',
  access: 'token',
  about: 'The serial numbers of the stored certificates of this site.',
  body: pageFields,
  run: list,
})

const body = Type.Object({
  after: text({ about: 'Certificates beyond this serial number only.' }),
  limit: integer({ about: 'At most so many; 1,000 when absent.' }),
  expires_before: time({ about: 'Only those that expire before this moment; then in the order of their expiry.' }),
  issuer: text({ about: 'Only those of this issuer; then in the order of their expiry.' }),
})
type DetailedCall = Call<PkiContext, typeof body>

const usualPage = 1000

async function listDetailed({ context, mount, body }: DetailedCall): Promise<Data> {
  const { expires_before: expiresBefore, issuer: reference } = body
  const authority = await context.authorities.of(mount)
  const issuer = reference ? issuerOf(authority, reference, 404).row.id : undefined
  const wanted = body.limit && body.limit > 0 ? Math.min(body.limit, usualPage) : usualPage
  const filter = { ...(issuer ? { issuer } : {}), ...(expiresBefore === undefined ? {} : { expiresBefore }) }
  const rows = await context.lists.detailed(mount.uuid, { ...cursorOf(body.after), limit: wanted }, filter)
  if (rows.length === 0) throw absent()
  const entry = (row: CertificateRow) => [shown(row.serial), describeStored(row)]
  return { keys: rows.map(({ serial }) => shown(serial)), key_info: Object.fromEntries(rows.map(entry)) }
}

export const listDetailedCertificates = route<PkiContext, typeof body>({
  method: 'LIST',
  path: 'certs/detailed',
  access: 'token',
  about: 'The stored certificates of this site with their names and expiry, a page of them.',
  body,
  run: listDetailed,
})
