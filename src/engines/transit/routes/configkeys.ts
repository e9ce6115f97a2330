import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { data } from '../../../answers.ts'
import { boolean } from '../../../field.ts'
import { type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'
import type { SettingsRow } from '../ring/tables.ts'

const keysConfig = data(Type.Object({ disable_upsert: Type.Boolean() }))

const body = Type.Object({
  disable_upsert: boolean({ about: 'Whether encrypt is kept from making missing keys; false when absent.' }),
})

const shown = ({ disableUpsert }: SettingsRow): Data => ({ disable_upsert: disableUpsert })

export const readKeysConfig = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'config/keys',
  access: 'token',
  about: 'Settings of all keys.',
  body: noFields,
  answers: keysConfig,
  run: ({ context: { settings }, mount }) => after(settings.of(mount), shown),
})

export const writeKeysConfig = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'config/keys',
  access: 'token',
  about: 'Changes settings of all keys.',
  body,
  answers: keysConfig,
  async run({ context: { settings }, mount, body }) {
    return shown(await settings.change(mount, { disableUpsert: body.disable_upsert ?? false }))
  },
})
