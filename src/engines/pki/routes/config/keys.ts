import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { type Authority, isDefault } from '../../authority/authority.ts'
import { newDefaultKey } from '../../authority/references.ts'
import type { PkiContext } from '../../context.ts'
import { residenceOf } from '../../keys/keysource.ts'

const keysConfig = data(Type.Object({ default: Type.String(), residence: Type.String() }))

const describe = ({ settings }: Authority): Data => ({
  default: settings.defaultKey,
  residence: settings.residence,
})

const nothing = Type.Object({})

export const readKeysConfig = route<PkiContext, typeof nothing>({
  method: 'GET',
  path: 'config/keys',
  access: 'token',
  about: 'The default key, and the residence of new keys.',
  body: nothing,
  answers: keysConfig,
  run: async ({ context, mount }) => describe(await context.authorities.of(mount)),
})

const body = Type.Object({
  default: text({ about: 'Name or id of the new default key.' }),
  residence: text({ about: 'Residence of new keys unless their request gives one: wrapped or token.' }),
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
  about: 'Sets the default key, and the residence of new keys.',
  body,
  answers: keysConfig,
  run: write,
})
