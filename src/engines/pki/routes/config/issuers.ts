import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, text } from '../../../../field.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import { type Authority, isDefault } from '../../authority/authority.ts'
import { newDefaultIssuer } from '../../authority/references.ts'
import type { PkiContext } from '../../context.ts'

const issuersConfig = data(Type.Object({ default: Type.String(), default_follows_latest_issuer: Type.Boolean() }))

const describe = ({ settings }: Authority): Data => ({
  default: settings.defaultIssuer,
  default_follows_latest_issuer: settings.defaultFollowsLatest,
})

const nothing = Type.Object({})

export const readIssuersConfig = route<PkiContext, typeof nothing>({
  method: 'GET',
  path: 'config/issuers',
  access: 'token',
  about: 'The default issuer.',
  body: nothing,
  answers: issuersConfig,
  run: async ({ context, mount }) => describe(await context.authorities.of(mount)),
})

const body = Type.Object({
  default: text({ about: 'Name or id of the new default issuer.' }),
  default_follows_latest_issuer: boolean({
    about: 'Whether a new root, or the only new issuer of an import, becomes the default one.',
  }),
})
type IssuersCall = Call<PkiContext, typeof body>

/** @param unnamed the issuer if the request names none; undefined leaves it unchanged */
async function write({ context, mount, body, warn }: IssuersCall, unnamed?: string): Promise<Data> {
  const { default: given = unnamed, default_follows_latest_issuer: follows } = body
  if (given !== undefined && (given.trim() === '' || isDefault(given))) {
    throw badRequest("Invalid issuer specification; must be non-empty and can't be 'default'.")
  }
  const { authority } = await context.authorities.change(mount, async (_tx, before) => ({
    settings: {
      ...(given === undefined ? {} : { defaultIssuer: newDefaultIssuer(before, given).row.id }),
      ...(follows === undefined ? {} : { defaultFollowsLatest: follows }),
    },
    result: undefined,
  }))
  const issuer = authority.defaultIssuer
  if (issuer !== undefined && issuer.row.keyId === '') {
    warn('The default issuer has no private key here: certificates cannot be issued by it.')
  }
  return describe(authority)
}

const writeRoute = (path: string, unnamed?: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes an issuer the default one.',
    body,
    answers: issuersConfig,
    run: (call) => write(call, unnamed),
  })

export const writeIssuersConfig = writeRoute('config/issuers')
export const replaceRoot = writeRoute('root/replace', 'next')
