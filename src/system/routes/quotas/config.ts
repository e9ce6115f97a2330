import { Type } from 'typebox'
import { data, done, strings } from '../../../answers.ts'
import { boolean, commaList } from '../../../field.ts'
import { quotaConfigName, quotaConfigOf, readExemptPaths, storedConfig } from '../../../quota/config.ts'
import { endpoint, noFields } from '../../context.ts'

const quotaConfig = Type.Object({
  absolute_rate_limit_exempt_paths: strings,
  enable_rate_limit_audit_logging: Type.Boolean(),
  enable_rate_limit_response_headers: Type.Boolean(),
  rate_limit_exempt_paths: strings,
})

const common = { path: 'quotas/config', access: 'token' } as const

export const readQuotaConfig = endpoint({
  ...common,
  method: 'GET',
  about: 'What holds for all rate-limit quotas.',
  body: noFields,
  answers: data(quotaConfig),
  async run({ context }) {
    const config = quotaConfigOf(await context.settings.current())
    return {
      absolute_rate_limit_exempt_paths: config.absoluteExemptPaths,
      enable_rate_limit_audit_logging: config.audited,
      enable_rate_limit_response_headers: config.headers,
      rate_limit_exempt_paths: config.exemptPaths,
    }
  },
})

export const writeQuotaConfig = endpoint({
  ...common,
  method: 'POST',
  about: 'Sets what holds for all rate-limit quotas; what is left out stays. In force everywhere before the answer.',
  body: Type.Object({
    rate_limit_exempt_paths: commaList({ about: 'Paths that no quota counts, with those below them; [] for none.' }),
    absolute_rate_limit_exempt_paths: commaList({ about: 'The same: there is one namespace.' }),
    enable_rate_limit_audit_logging: boolean({ about: 'Whether requests beyond a quota are audited.' }),
    enable_rate_limit_response_headers: boolean({ about: 'Whether answers say what is left of the quota.' }),
  }),
  answers: done,
  async run({ context: { settings }, body }) {
    const read = (field: 'rate_limit_exempt_paths' | 'absolute_rate_limit_exempt_paths') =>
      body[field] && readExemptPaths(field, body[field])
    const exemptPaths = read('rate_limit_exempt_paths')
    const absoluteExemptPaths = read('absolute_rate_limit_exempt_paths')
    await settings.change('quota-config', quotaConfigName, (set) => {
      const old = quotaConfigOf(set)
      return storedConfig({
        exemptPaths: exemptPaths ?? old.exemptPaths,
        absoluteExemptPaths: absoluteExemptPaths ?? old.absoluteExemptPaths,
        audited: body.enable_rate_limit_audit_logging ?? old.audited,
        headers: body.enable_rate_limit_response_headers ?? old.headers,
      })
    })
    return undefined
  },
})
