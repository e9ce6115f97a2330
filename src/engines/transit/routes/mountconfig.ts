import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer } from '../../../field.ts'
import { type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import type { SettingsRow } from '../ring/tables.ts'

const nothing = Type.Object({})
const keys = Type.Object({
  disable_upsert: boolean({ about: 'Whether encrypt makes no keys; false when absent.' }),
})
const cache = Type.Object({
  size: integer({
    about: 'Key rings cached by each worker; 0 or absent is as many as the server holds, else at least 10.',
  }),
})

const smallestCache = 10
const shownKeys = ({ disableUpsert }: SettingsRow): Data => ({ disable_upsert: disableUpsert })
const shownCache = ({ cacheSize }: SettingsRow): Data => ({ size: cacheSize })

/** Settings of the whole mount. */
export const configurationRoutes = [
  route<TransitContext, typeof nothing>({
    method: 'GET',
    path: 'config/keys',
    access: 'token',
    about: 'Settings that hold for all keys.',
    body: nothing,
    danger: 'none',
    run: ({ context: { settings }, mount }) => after(settings.of(mount), shownKeys),
  }),
  route<TransitContext, typeof keys>({
    method: 'POST',
    path: 'config/keys',
    access: 'token',
    about: 'Changes settings that hold for all keys.',
    body: keys,
    danger: 'none',
    async run({ context: { settings }, mount, body }) {
      return shownKeys(await settings.change(mount, { disableUpsert: body.disable_upsert ?? false }))
    },
  }),
  route<TransitContext, typeof nothing>({
    method: 'GET',
    path: 'cache-config',
    access: 'token',
    about: 'How many key rings each worker caches.',
    body: nothing,
    danger: 'none',
    run: ({ context: { settings }, mount }) => after(settings.of(mount), shownCache),
  }),
  route<TransitContext, typeof cache>({
    method: 'POST',
    path: 'cache-config',
    access: 'token',
    about: 'Changes how many key rings each worker caches, from the next reload of the plugin on.',
    body: cache,
    danger: 'none',
    async run({ context: { settings }, mount, body, warn }) {
      const { size = 0 } = body
      if (size !== 0 && size < smallestCache) {
        throw badRequest('size must be 0 or a value greater or equal to 10')
      }
      const changed = await settings.change(mount, { cacheSize: size })
      warn('the size takes effect when the plugin is reloaded: sys/plugins/reload/backend')
      return shownCache(changed)
    },
  }),
]
