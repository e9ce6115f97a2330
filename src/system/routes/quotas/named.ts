import { done, keyList } from '../../../answers.ts'
import { absent } from '../../../errors.ts'
import { endpoint, noFields, type SystemContext } from '../../context.ts'
import { named } from './fields.ts'

/** A kind of quotas, each with a name. */
type QuotaKind = 'lease-count' | 'rate-limit'

/** Reads the quotas of a kind. */
type AllQuotas<T extends { readonly name: string }> = (context: SystemContext) => Promise<readonly T[]>

/** The route that lists the names of the quotas of a kind; 404 where there is none. */
export const listQuotas = <T extends { readonly name: string }>(kind: QuotaKind, all: AllQuotas<T>) =>
  endpoint({
    ...named,
    method: 'LIST',
    path: `quotas/${kind}`,
    about: `The names of all ${kind} quotas.`,
    body: noFields,
    answers: keyList,
    async run({ context }) {
      const keys = (await all(context)).map(({ name }) => name).sort()
      if (keys.length === 0) throw absent()
      return { keys }
    },
  })

/** The quota with this name. @throws ApiError 404 */
export function quotaNamed<T extends { readonly name: string }>(all: readonly T[], name: string | undefined): T {
  const found = all.find((quota) => quota.name === name)
  if (found === undefined) throw absent()
  return found
}

/** The route that removes a quota of a kind; done, too, where there is none with the name. */
export const removeQuota = (kind: QuotaKind) =>
  endpoint({
    ...named,
    method: 'DELETE',
    path: `quotas/${kind}/:name`,
    about: `Removes a ${kind} quota.`,
    body: noFields,
    answers: done,
    async run({ context, params }) {
      await context.settings.set(kind, params.name ?? '', undefined)
      return undefined
    },
  })
