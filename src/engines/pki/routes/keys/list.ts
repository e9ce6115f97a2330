import { Type } from 'typebox'
import { keyInfo } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { pageFields, pageOf } from '../../input/page.ts'

async function list({ context, mount, body }: Call<PkiContext, typeof pageFields>): Promise<Data> {
  const { keys, settings } = await context.authorities.of(mount)
  const ids = pageOf([...keys.keys()], body)
  if (ids.length === 0) throw absent()
  const entries = ids.map((id) => [id, { key_name: keys.get(id)?.name ?? '', is_default: id === settings.defaultKey }])
  return { keys: ids, key_info: Object.fromEntries(entries) }
}

export const listKeys = route<PkiContext, typeof pageFields>({
  method: 'LIST',
  path: 'keys',
  access: 'token',
  about: 'The ids of all keys, with their names.',
  body: pageFields,
  answers: keyInfo(Type.Object({ key_name: Type.String(), is_default: Type.Boolean() })),
  run: list,
})
