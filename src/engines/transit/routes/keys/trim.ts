import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { integer } from '../../../../field.ts'
import { route } from '../../../../route.ts'
import type { TransitContext } from '../../context.ts'
import { describeInventory, keyAnswer } from '../../ring/describe.ts'

const body = Type.Object({
  min_available_version: integer({ about: 'The lowest version to keep; versions below it are removed for ever.' }),
})

export const trimKey = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/trim',
  access: 'token',
  about: 'Removes old versions of a key and their wrapped material for ever; both minimum versions must be above them.',
  body,
  answers: keyAnswer,
  async run({ context, mount, params, body }) {
    const { name = '' } = params
    const { min_available_version: version } = body
    if (version === undefined) throw badRequest('missing min_available_version')
    return describeInventory(context, await context.changes.trim(mount, name, version))
  },
})
