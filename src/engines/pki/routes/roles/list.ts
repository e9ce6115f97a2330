import { Type } from 'typebox'
import { keyList } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { integer, text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'

const body = Type.Object({
  after: text({ about: 'Only names after this one.' }),
  limit: integer({ about: 'The most names to return; absent or 0 means all.' }),
})

type ListCall = Call<PkiContext, typeof body>

const pageNames = 1000

/** Names after `after`, read from the database page by page. */
async function list({ context, mount, body }: ListCall): Promise<Data> {
  const limit = body.limit && body.limit > 0 ? body.limit : Number.POSITIVE_INFINITY
  const keys: string[] = []
  for (let cursor = body.after ?? ''; keys.length < limit; cursor = keys.at(-1) ?? '') {
    const page = await context.roles.names(mount, cursor, Math.min(pageNames, limit - keys.length))
    keys.push(...page)
    if (page.length < pageNames) break
  }
  if (keys.length === 0) throw absent()
  return { keys }
}

export const listRoles = route<PkiContext, typeof body>({
  method: 'LIST',
  path: 'roles',
  access: 'token',
  about: 'The names of all roles.',
  body,
  answers: keyList,
  run: list,
})
