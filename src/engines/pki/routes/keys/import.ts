import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text, wholeBody } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { defaultsAfter } from '../../authority/defaults.ts'
import { makerOf, type PkiContext } from '../../context.ts'
import { readPemBundle, wipeKeys } from '../../issuers/imports.ts'
import { describeKey, keyAnswer } from '../../keys/describe.ts'
import { crlIssuersOf } from '../../publication/groups.ts'

const body = Type.Object({
  pem_bundle: text({ about: 'One private key, PEM; not encrypted.', longest: wholeBody }),
  key_name: text({ about: 'Name of the key.' }),
})
type ImportCall = Call<PkiContext, typeof body>

const shortest = 64

async function run({ context, mount, body, caller, warn }: ImportCall): Promise<Data> {
  const { pem_bundle: pem = '', key_name: name = '' } = body
  if (pem.length < shortest) {
    throw badRequest(
      'provided data for import was too short; perhaps a path was passed to the API rather than the contents of a PEM file',
    )
  }
  const bundle = await readPemBundle(pem)
  try {
    const [only, ...more] = bundle.keys
    // A certificate beside the key would be left out: issuers/import/bundle takes both.
    if (only === undefined || more.length + bundle.certificates.length > 0) {
      throw badRequest('only a single key can be present within the pem_bundle for importing')
    }
    const made = await context.newKeys.imported(only.pkcs8, makerOf(caller))
    try {
      const { authority, result: key } = await context.authorities.change(mount, async (tx, before) => {
        const known = context.keyRows.find(before, made)
        if (known !== undefined) return { result: { row: known, isNew: false } }
        if (name !== '' && before.keyNamed(name) !== undefined) {
          throw badRequest(`an existing key is using the requested key name value: ${name}`)
        }
        const row = await context.keyRows.insert(tx, before, made, name)
        await context.issuerRows.link(tx, before, row)
        return { settings: defaultsAfter(before, { issuers: [], keys: [row] }, warn), result: { row, isNew: true } }
      })
      if (!key.isNew) warn('Key already imported, use key/ endpoint to update name.')
      else {
        const of = crlIssuersOf(authority, [key.row.id])
        for (const warning of await context.crls.rebuild(mount, { of })) warn(warning)
      }
      return describeKey(key.row)
    } finally {
      await context.newKeys.discard(made)
    }
  } finally {
    wipeKeys(bundle)
  }
}

export const importKey = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'keys/import',
  access: 'token',
  about: 'Imports a private key.',
  body,
  answers: data(Type.Object(keyAnswer)),
  run,
})
