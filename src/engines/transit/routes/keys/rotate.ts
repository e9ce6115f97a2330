import { Type } from 'typebox'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { makerOf, type TransitContext } from '../../context.ts'
import { readReference } from '../../input/managedkey.ts'
import { describeInventory, keyAnswer } from '../../ring/describe.ts'
import { managedType } from '../../ring/managedtype.ts'
import type { KeyRow } from '../../ring/tables.ts'

const body = Type.Object({
  managed_key_name: text({ about: 'Name of the new managed key, for keys of type managed_key.' }),
  managed_key_id: text({ about: 'UUID of the new managed key, for keys of type managed_key.' }),
})

type RotateCall = Call<TransitContext, typeof body>

async function rotate({ context, mount, params, body, caller }: RotateCall): Promise<Data> {
  const { rotation, managed } = context
  const createdBy = makerOf(caller)
  const managedFor = async (key: KeyRow) => {
    const reference = readReference(body, key.type === managedType)
    return reference && managed.prepare(mount.uuid, reference, createdBy)
  }
  return describeInventory(context, await rotation.rotate(mount, params.name ?? '', createdBy, { managedFor }))
}

export const rotateKey = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/rotate',
  access: 'token',
  about: 'Adds a version, which encrypts and signs from then on.',
  body,
  answers: keyAnswer,
  run: rotate,
})
