import { badRequest } from '../errors.ts'
import type { SettingSet, SettingValue } from '../settings/settings.ts'

/** Settings of all rate limits. */
export interface QuotaConfig {
  /** Paths that are not counted, with what lies below them; `*` at the end leaves the last segment open. */
  readonly exemptPaths: readonly string[]
  /** The same: there is one namespace. */
  readonly absoluteExemptPaths: readonly string[]
  /** Whether refused requests are audited. */
  readonly audited: boolean
  /** Whether answers carry X-Ratelimit-Limit, -Remaining and -Reset. */
  readonly headers: boolean
}

/** The name of the one setting of the kind `quota-config`. */
export const quotaConfigName = 'config'

/** The reference's initial settings. */
const initial: QuotaConfig = {
  exemptPaths: [
    'sys/internal/ui/mounts',
    'sys/generate-recovery-token/attempt',
    'sys/generate-recovery-token/update',
    'sys/generate-root/attempt',
    'sys/generate-root/update',
    'sys/generate-root-token/attempt',
    'sys/generate-root-token/update',
    'sys/health',
    'sys/seal-status',
    'sys/unseal',
  ],
  absoluteExemptPaths: [],
  audited: false,
  headers: false,
}

export const quotaConfigOf = (set: SettingSet): QuotaConfig => ({
  ...initial,
  ...(set.get('quota-config')?.get(quotaConfigName) as Partial<QuotaConfig> | undefined),
})

const mostPaths = 100
const longestPath = 512

/** @throws ApiError 400 that names the field */
export function readExemptPaths(field: string, paths: readonly string[]): readonly string[] {
  if (paths.length > mostPaths) throw badRequest(`${field} may have at most ${mostPaths} paths`)
  const bare = paths.map((path) => path.trim().replace(/^\/+/, ''))
  if (bare.some((path) => path.replace(/\*$/, '') === '' || /\*./.test(path) || path.length > longestPath)) {
    throw badRequest(`${field} must hold paths of 1 to ${longestPath} characters, with * at their end alone`)
  }
  return bare
}

export const storedConfig = (config: QuotaConfig): SettingValue => ({ ...config })

/** Whether requests to a path are not counted. @param path canonical */
export const isExempt = ({ exemptPaths, absoluteExemptPaths }: QuotaConfig, path: string): boolean =>
  exemptPaths.some((one) => reaches(one, path)) || absoluteExemptPaths.some((one) => reaches(one, path))

function reaches(exempt: string, path: string): boolean {
  if (exempt.endsWith('*')) return path.startsWith(exempt.slice(0, -1))
  return path === exempt || path.startsWith(exempt.endsWith('/') ? exempt : `${exempt}/`)
}
