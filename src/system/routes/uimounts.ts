import { Type } from 'typebox'
import { data, mapOf } from '../../answers.ts'
import type { Acl } from '../../auth/acl/compile.ts'
import { reaches } from '../../auth/acl/reach.ts'
import { ApiError } from '../../errors.ts'
import { describeMount, type MountRecord, mountAnswer } from '../../request/mounts/mount.ts'
import type { Caller, Data } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'
import { isSecret } from './mounts.ts'

const { description, options, type } = mountAnswer
/** For callers without a token, three members of each. */
const uiMounts = mapOf(Type.Union([Type.Object(mountAnswer), Type.Object({ description, options, type })]))

const isOpen = (mount: MountRecord): boolean => mount.config.listing_visibility === 'unauth'

async function aclOf(context: SystemContext, caller: Caller | undefined): Promise<Acl | undefined> {
  return caller && (await context.policies.acl(caller.policies))
}

/** The mounts that a client may know without a rule on sys/: those in which its token may do anything at all. */
export const listUiMounts = endpoint({
  method: 'GET',
  path: 'internal/ui/mounts',
  access: 'public',
  about: 'The mounts that the token may use; without a token, those tuned to be shown to everyone.',
  body: noFields,
  answers: data(Type.Object({ auth: uiMounts, secret: uiMounts })),
  async run({ context, caller }): Promise<Data> {
    const acl = await aclOf(context, caller)
    const secret: Record<string, unknown> = {}
    const auth: Record<string, unknown> = {}
    for (const mount of await context.mounts.list()) {
      const usable = acl !== undefined && reaches(acl, mount.path)
      if (!usable && !isOpen(mount)) continue
      const { description, options, type } = mount
      const shown = acl ? describeMount(mount) : { description, options, type }
      if (isSecret(mount)) secret[mount.path] = shown
      else auth[mount.path.slice('auth/'.length)] = shown
    }
    return { auth, secret }
  },
})

export const readUiMount = endpoint({
  method: 'GET',
  path: 'internal/ui/mounts/:path*',
  access: 'public',
  about: 'The mount under which a path lies, for a token that may do anything in it.',
  body: noFields,
  answers: data(Type.Object({ ...mountAnswer, path: Type.String() })),
  async run({ context, caller, params }): Promise<Data> {
    const path = params.path ?? ''
    const acl = await aclOf(context, caller)
    const mount = await context.mounts.find(path)
    const record = mount && (await context.mounts.at(mount.path))
    if (acl === undefined || record === undefined || !reaches(acl, record.path)) {
      const reason = 'preflight capability check returned 403'
      throw new ApiError(403, `${reason}, please ensure client's policies grant access to path "${path}/"`)
    }
    return { ...describeMount(record), path: record.path }
  },
})
