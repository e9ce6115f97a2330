import { type Data, route } from '../../../../route.ts'
import type { TransitContext } from '../../context.ts'
import { noFields } from '../../input/fields.ts'
import { describeInventory, keyAnswer } from '../../ring/describe.ts'

export const softDeleteKey = route<TransitContext, typeof noFields>({
  method: 'DELETE',
  path: 'keys/:name/soft-delete',
  access: 'token',
  about: 'Puts a key out of use until it is restored. Nothing is lost.',
  body: noFields,
  answers: keyAnswer,
  async run({ context, mount, params, warn }): Promise<Data> {
    const { name = '' } = params
    const { changed, key } = await context.changes.setSoftDeleted(mount, name, true)
    if (!changed) warn('key was already marked as soft deleted')
    return describeInventory(context, key)
  },
})
