import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { crlSettingsOf } from '../../publication/settings.ts'

const rotated = data(Type.Object({ success: Type.Boolean() }))

type RotateCall = Call<PkiContext, typeof noFields>

async function rotate({ context, mount, warn }: RotateCall): Promise<Data> {
  await context.associations.soon(mount.uuid)
  for (const warning of await context.crls.rotate(mount, 'complete')) warn(warning)
  return { success: true }
}

async function rotateDelta({ context, mount, warn }: RotateCall): Promise<Data> {
  const { enableDelta } = crlSettingsOf(await context.authorities.of(mount))
  if (enableDelta) for (const warning of await context.crls.rotate(mount, 'delta')) warn(warning)
  else warn('requested rebuild of delta CRL when delta CRL is not enabled; this is a no-op')
  return { success: true }
}

export const rotateCrl = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'crl/rotate',
  access: 'token',
  about: 'Rebuilds every list of the mount.',
  body: noFields,
  answers: rotated,
  run: rotate,
})

export const rotateDeltaCrl = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'crl/rotate-delta',
  access: 'token',
  about: 'Rebuilds every delta list of the mount.',
  body: noFields,
  answers: rotated,
  run: rotateDelta,
})
