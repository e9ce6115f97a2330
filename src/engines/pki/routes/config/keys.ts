import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { type Authority, isDefault } from '../../authority/authority.ts'
import { newDefaultKey } from '../../authority/references.ts'
import type { PkiContext } from '../../context.ts'
import { residenceOf } from '../../keys/keysource.ts'

const describe = ({ settings }: Authority): Data => ({
  default: settings.defaultKey,
  residence: settings.residence,
})

const nothing = Type.Object({})

export const readKeysConfig = route<PkiContext, typeof nothing>({
  method: 'GET',
  path: 'config/keys',
  access: 'token',
  about: 'The default key, and where new keys live.',
  body: nothing,
  run: async ({ context, mount }) => describe(await context.authorities.of(mount)),
})

const body = Type.Object({
  default: text({ about: 'Name or id of the key that is to be the default one.' }),
  residence: text({ about: 'Where new keys live whose request does not say: wrapped or token.' }),
})
type KeysCall = Call<PkiContext, typeof body>

async function write({ context, mount, body }: KeysCall): Promise<Data> {
  const { default: reference, residence } = body
  const stays = reference === undefined && residence !== undefined
  if (!stays && (!reference || isDefault(reference))) {
    throw badRequest("Invalid key specification; must be non-empty and can't be 'default'.")
  }
  const { authority } = await context.authorities.change(mount, async (_tx, before) => ({
    settings: {
      ...(reference ? { defaultKey: newDefaultKey(before, reference).id } : {}),
      ...(residence === undefined ? {} : { residence: residenceOf(residence) }),
    },
    result: undefined,
  }))
  return describe(authority)
}

export const writeKeysConfig = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'config/keys',
  access: 'token',
  about: 'Sets the default key, and where new keys live.',
  body,
  run: write,
})
