import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { boolean } from '../../../field.ts'
import { type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'
import type { SettingsRow } from '../ring/tables.ts'

const body = Type.Object({
  disable_upsert: boolean({ about: 'Whether encrypt makes no keys; false when absent.' }),
})

const shown = ({ disableUpsert }: SettingsRow): Data => ({ disable_upsert: disableUpsert })

export const readKeysConfig = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'config/keys',
  access: 'token',
  about: 'Settings that hold for all keys.',
  body: noFields,
  run: ({ context: { settings }, mount }) => after(settings.of(mount), shown),
})

export const writeKeysConfig = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'config/keys',
  access: 'token',
  about: 'Changes settings that hold for all keys.',
  body,
  async run({ context: { settings }, mount, body }) {
    return shown(await settings.change(mount, { disableUpsert: body.disable_upsert ?? false }))
  },
})
