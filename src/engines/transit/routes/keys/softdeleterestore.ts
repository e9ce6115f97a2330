import { type Data, route } from '../../../../route.ts'
import type { TransitContext } from '../../context.ts'
import { noFields } from '../../input/fields.ts'
import { describeInventory, keyAnswer } from '../../ring/describe.ts'

export const restoreSoftDeletedKey = route<TransitContext, typeof noFields>({
  method: 'POST',
  path: 'keys/:name/soft-delete-restore',
  access: 'token',
  about: 'Puts a soft-deleted key back into use.',
  body: noFields,
  answers: keyAnswer,
  async run({ context, mount, params, warn }): Promise<Data> {
    const { name = '' } = params
    const { changed, key } = await context.changes.setSoftDeleted(mount, name, false)
    if (!changed) warn('key was already restored')
    return describeInventory(context, key)
  },
})
