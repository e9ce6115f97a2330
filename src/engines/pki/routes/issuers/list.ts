import { Type } from 'typebox'
import { keyInfo } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { withColons } from '../../../../x509/serial.ts'
import type { PkiContext } from '../../context.ts'
import { pageFields, pageOf } from '../../input/page.ts'

const listedIssuer = Type.Object({
  issuer_name: Type.String(),
  is_default: Type.Boolean(),
  key_id: Type.String(),
  serial_number: Type.String(),
})

async function list({ context, mount, body }: Call<PkiContext, typeof pageFields>): Promise<Data> {
  const { issuers, settings } = await context.authorities.of(mount)
  const ids = pageOf([...issuers.keys()], body)
  if (ids.length === 0) throw absent()
  const entries = ids.flatMap((id) => {
    const issuer = issuers.get(id)
    if (issuer === undefined) return []
    const { row, certificate } = issuer
    const info = {
      issuer_name: row.name ?? '',
      is_default: id === settings.defaultIssuer,
      key_id: row.keyId,
      serial_number: withColons(certificate.serial),
    }
    return [[id, info]]
  })
  return { keys: ids, key_info: Object.fromEntries(entries) }
}

export const listIssuers = route<PkiContext, typeof pageFields>({
  method: 'LIST',
  path: 'issuers',
  access: 'public',
  about: 'The ids of all issuers, with their names.',
  body: pageFields,
  answers: keyInfo(listedIssuer),
  run: list,
})
