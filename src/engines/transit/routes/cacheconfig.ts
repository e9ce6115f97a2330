import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { data } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { integer } from '../../../field.ts'
import { type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { noFields } from '../input/fields.ts'
import type { SettingsRow } from '../ring/tables.ts'

const cacheConfig = data(Type.Object({ size: Type.Integer() }))

const body = Type.Object({
  size: integer({
    about: 'Key rings cached by each worker, at least 10; 0 or absent means the server’s own limit.',
  }),
})

const smallestCache = 10
const shown = ({ cacheSize }: SettingsRow): Data => ({ size: cacheSize })

export const readCacheConfig = route<TransitContext, typeof noFields>({
  method: 'GET',
  path: 'cache-config',
  access: 'token',
  about: 'The number of key rings that each worker caches.',
  body: noFields,
  answers: cacheConfig,
  run: ({ context: { settings }, mount }) => after(settings.of(mount), shown),
})

export const writeCacheConfig = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'cache-config',
  access: 'token',
  about: 'Changes the number of key rings that each worker caches, from the next reload of the plugin on.',
  body,
  answers: cacheConfig,
  async run({ context: { settings }, mount, body, warn }) {
    const { size = 0 } = body
    if (size !== 0 && size < smallestCache) {
      throw badRequest('size must be 0 or a value greater or equal to 10')
    }
    const changed = await settings.change(mount, { cacheSize: size })
    warn('the size takes effect when the plugin is reloaded: sys/plugins/reload/backend')
    return shown(changed)
  },
})
