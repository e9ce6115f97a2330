import { Type } from 'typebox'
import { type Call, type Data, route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { describeKey } from '../ring/describe.ts'

const nothing = Type.Object({})

/** Puts the key away or takes it back. @param already what is said when there is nothing to change */
async function mark(
  { context, mount, params, warn }: Call<TransitContext>,
  softDeleted: boolean,
  already: string,
): Promise<Data> {
  const { rings } = context
  const { name = '' } = params
  const changed = await rings.change(mount, name, `no existing key named ${name} could be found`, async (tx, ring) => {
    if (ring.key.softDeleted === softDeleted) return false
    await rings.update(tx, ring, { softDeleted })
    return true
  })
  if (!changed) warn(already)
  return describeKey(context, mount, name)
}

export const softDeleteRoutes = [
  route<TransitContext, typeof nothing>({
    method: 'DELETE',
    path: 'keys/:name/soft-delete',
    access: 'token',
    about: 'Puts a key away: nothing is done with it until it is restored, and nothing of it is lost.',
    body: nothing,
    danger: 'destructive',
    run: (call) => mark(call, true, 'key was already marked as soft deleted'),
  }),
  route<TransitContext, typeof nothing>({
    method: 'POST',
    path: 'keys/:name/soft-delete-restore',
    access: 'token',
    about: 'Lets a soft-deleted key be used again.',
    body: nothing,
    danger: 'none',
    run: (call) => mark(call, false, 'key was already restored'),
  }),
]
