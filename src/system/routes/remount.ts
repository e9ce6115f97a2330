import { Type } from 'typebox'
import { data } from '../../answers.ts'
import { absent, badRequest } from '../../errors.ts'
import { text } from '../../field.ts'
import { endpoint, noFields } from '../context.ts'

const move = Type.Object({
  migration_id: Type.String(),
  migration_info: Type.Object({ source_mount: Type.String(), target_mount: Type.String(), status: Type.String() }),
})

const moving = Type.Object({
  from: text({ about: 'The path of the mount.' }),
  to: text({ about: 'Its new path, at which nothing is mounted.' }),
})

export const moveMount = endpoint({
  method: 'POST',
  path: 'remount',
  access: 'sudo',
  about: 'Moves a mount with everything in it; done, on every worker of every node, when it is answered.',
  body: moving,
  inject: true,
  answers: data(Type.Object({ migration_id: Type.String() })),
  async run({ context, body, warn }) {
    const { from, to } = body
    if (!from || !to) throw badRequest("both 'from' and 'to' path must be specified as a string")
    const id = await context.mounts.move(from, to)
    warn('Mount move is done; policies now decide by the new path')
    return { migration_id: id }
  },
})

export const readMove = endpoint({
  method: 'GET',
  path: 'remount/status/:id',
  access: 'token',
  about: 'The outcome of a move.',
  body: noFields,
  answers: data(move),
  async run({ context, params }) {
    const { id = '' } = params
    const moved = await context.mounts.findRemount(id)
    if (moved === undefined) throw absent()
    const { source, target } = moved
    return {
      migration_id: id,
      migration_info: { source_mount: source, target_mount: target, status: 'success' },
    }
  },
})
