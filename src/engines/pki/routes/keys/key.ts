import { Type } from 'typebox'
import { data, done, titled } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { describe as describeMaterial, materialAnswer } from '../../../../keys/material.ts'
import { Answer, type Call, type Data, type Outcome, route } from '../../../../route.ts'
import { checkName } from '../../authority/names.ts'
import { keyOf } from '../../authority/references.ts'
import { keysTable } from '../../authority/tables.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { describeKey, keyAnswer, subjectKeyIdOf } from '../../keys/describe.ts'

const keyWithCustody = data(
  titled('PkiKey', {
    ...keyAnswer,
    key_bits: Type.Integer(),
    subject_key_id: Type.String(),
    managed_key_id: Type.Optional(Type.String()),
    managed_key_name: Type.Optional(Type.String()),
    ...materialAnswer,
  }),
)

type KeyCall = Call<PkiContext, typeof noFields>

/** The reference's fields, and the residence and history of the key. */
async function read({ context, mount, params }: KeyCall): Promise<Data> {
  const key = keyOf(await context.authorities.of(mount), params.key_ref ?? '', 404)
  const material = await context.material(key)
  const managed = key.managedKey
    ? { managed_key_id: key.managedKey, managed_key_name: (await context.managed.nameOf(key.managedKey)) ?? '' }
    : {}
  return {
    ...describeKey(key),
    key_bits: key.bits,
    subject_key_id: subjectKeyIdOf(material.publicKey),
    ...managed,
    ...describeMaterial(material.row),
  }
}

export const readKey = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'key/:key_ref',
  access: 'token',
  about: 'The properties of a key, never the key itself.',
  body: noFields,
  answers: keyWithCustody,
  run: read,
})

const renameBody = Type.Object({ key_name: text({ about: 'The new name; absent or empty removes the name.' }) })

/** The reference's words, other than for the name of a new key. */
const invalidName = 'new key name outside of valid character limits'

async function rename({ context, mount, params, body, warn }: Call<PkiContext, typeof renameBody>): Promise<Data> {
  const reference = params.key_ref ?? ''
  const name = body.key_name ?? ''
  const { authority, result: id } = await context.authorities.change(mount, async (tx, before) => {
    const key = keyOf(before, reference)
    const taken = before.keyNamed(name)
    if (name !== '') checkName('key', name, taken !== undefined && taken.id !== key.id, invalidName)
    if ((key.name ?? '') !== name) {
      await context.database.table(keysTable).update(tx, key, { name: name === '' ? null : name })
    }
    return { result: key.id }
  })
  if (name === '') warn(`Name successfully deleted, you will now need to reference this key by it's Id: ${id}`)
  return describeKey(keyOf(authority, id))
}

export const renameKey = route<PkiContext, typeof renameBody>({
  method: 'POST',
  path: 'key/:key_ref',
  access: 'token',
  about: 'Gives a key another name.',
  body: renameBody,
  answers: data(Type.Object(keyAnswer)),
  run: rename,
})

async function remove({ context, mount, params, warn }: KeyCall): Promise<Outcome> {
  const reference = params.key_ref ?? ''
  const { result } = await context.authorities.change(mount, async (tx, before) => {
    const key = before.findKey(reference)
    if (key === undefined) return { result: undefined }
    const user = [...before.issuers.values()].find(({ row }) => row.keyId === key.id)
    if (user !== undefined) throw badRequest(`Failed to Delete Key.  Key in Use by Issuer: ${user.row.id}`)
    await context.keyRows.remove(tx, key)
    const wasDefault = before.settings.defaultKey === key.id
    return { settings: wasDefault ? { defaultKey: '' } : {}, result: wasDefault ? key.id : undefined }
  })
  if (result === undefined) return undefined
  warn(
    `Deleted key ${result} (via key_ref ${reference}); this was configured as the default key. Operations without an explicit key will not work until a new default is configured.`,
  )
  return new Answer({ data: null })
}

export const deleteKey = route<PkiContext, typeof noFields>({
  method: 'DELETE',
  path: 'key/:key_ref',
  access: 'token',
  about: 'Removes a key for ever; refused while an issuer uses it.',
  body: noFields,
  answers: done,
  run: remove,
})
