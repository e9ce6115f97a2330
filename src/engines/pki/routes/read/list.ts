import { Type } from 'typebox'
import { nextTurn } from '../../../../after.ts'
import { keyInfo, keyList } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { integer, text, time } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { issuerOf } from '../../authority/references.ts'
import { describeStored, storedAnswer } from '../../certificates/describe.ts'
import type { PkiContext } from '../../context.ts'
import { pageFields } from '../../input/page.ts'
import { cursorOf, mostSerials, serialPage, shownSerial, warnOfMore } from '../../input/serialpage.ts'

type ListCall = Call<PkiContext, typeof pageFields>

async function list({ context, mount, body, warn }: ListCall): Promise<Data> {
  const found = await context.lists.list(mount.uuid, serialPage(body))
  if (found.length === 0) throw absent()
  const keys = found.slice(0, mostSerials).map(shownSerial)
  if (keys.length < found.length) warnOfMore(keys, warn)
  return { keys }
}

export const listCertificates = route<PkiContext, typeof pageFields>({
  method: 'LIST',
  path: 'certs',
  access: 'token',
  about: 'The serial numbers of the stored certificates of this site.',
  body: pageFields,
  answers: keyList,
  run: list,
})

const body = Type.Object({
  after: text({ about: 'Only certificates after this serial number.' }),
  limit: integer({ about: 'The most certificates to return; 1,000 when absent.' }),
  expires_before: time({ about: 'Only those that expire before this time, in the order of their expiry.' }),
  issuer: text({ about: 'Only those of this issuer, in the order of their expiry.' }),
})
type DetailedCall = Call<PkiContext, typeof body>

const usualPage = 1000
/** Certificates read in one turn of the event loop: some milliseconds. */
const readAtOnce = 25

async function listDetailed({ context, mount, body }: DetailedCall): Promise<Data> {
  const { expires_before: expiresBefore, issuer: reference } = body
  const authority = await context.authorities.of(mount)
  const issuer = reference ? issuerOf(authority, reference, 404).row.id : undefined
  const wanted = body.limit && body.limit > 0 ? Math.min(body.limit, usualPage) : usualPage
  const filter = { ...(issuer ? { issuer } : {}), ...(expiresBefore === undefined ? {} : { expiresBefore }) }
  const rows = await context.lists.detailed(mount.uuid, { ...cursorOf(body.after), limit: wanted }, filter)
  if (rows.length === 0) throw absent()
  const info: Record<string, Data> = {}
  for (const [index, row] of rows.entries()) {
    if (index % readAtOnce === 0) await nextTurn()
    info[shownSerial(row.serial)] = describeStored(row)
  }
  return { keys: rows.map(({ serial }) => shownSerial(serial)), key_info: info }
}

export const listDetailedCertificates = route<PkiContext, typeof body>({
  method: 'LIST',
  path: 'certs/detailed',
  access: 'token',
  about: 'A page of the stored certificates of this site, with their names and expiry.',
  body,
  answers: keyInfo(storedAnswer),
  run: listDetailed,
})
