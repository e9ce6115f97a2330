import { readSeconds } from '../../../duration.ts'
import { badRequest } from '../../../errors.ts'
import type { Authority } from '../authority/authority.ts'
import { type CrlSettings, defaultCrlSettings } from '../crl/settings.ts'
import { isShardCount, mostShards } from '../crl/shards/shard.ts'
import type { Scope } from '../crl/tables.ts'

export const crlSettingsOf = ({ settings }: Authority): CrlSettings => settings.crl ?? defaultCrlSettings

/** Whose lists are made. */
export const scopesOf = ({ unifiedCrl }: CrlSettings): readonly Scope[] =>
  unifiedCrl ? ['local', 'unified'] : ['local']

/** A stored duration, which was read once before it was stored. */
export const millisecondsOf = (duration: string): number =>
  readSeconds(duration, (reason) => {
    throw new Error(`a stored duration cannot be read: ${reason}`)
  }) * 1000

/** Settings in a request; absent ones stay. Durations are text, and kept as they were given. */
export type CrlFields = {
  readonly [K in keyof Omit<CrlSettings, 'points' | 'deletedIssuers' | 'outlived' | 'localSince'>]?:
    | CrlSettings[K]
    | undefined
} & {
  /** Former shard counts whose lists are kept; the others end. */
  readonly formerShards?: readonly number[] | undefined
}

/** Durations by their names on the wire. */
const durations = {
  expiry: 'expiry',
  ocsp_expiry: 'ocspExpiry',
  auto_rebuild_grace_period: 'autoRebuildGracePeriod',
  delta_rebuild_interval: 'deltaRebuildInterval',
} as const

/**
 * The settings after a change.
 * @param now in milliseconds since 1970
 * @throws ApiError 400 naming the field or the rule, mostly in the reference's words
 */
export function changeCrlSettings(
  before: CrlSettings,
  { formerShards, ...fields }: CrlFields,
  now: number,
): CrlSettings {
  for (const [name, key] of Object.entries(durations)) checkDuration(name, fields[key])
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const changed: CrlSettings = { ...before, ...given }
  const settings = standsForLocal(before) && !standsForLocal(changed) ? { ...changed, localSince: now } : changed
  checkWindows(settings, fields)
  checkFeatures(settings)
  checkShards(settings)
  return formerShards === undefined ? settings : withoutShards(settings, formerShards, before.shards)
}

/** Whether unified lists are served at the paths of a site's own. */
const standsForLocal = ({ unifiedCrl, unifiedCrlOnExistingPaths }: CrlSettings): boolean =>
  unifiedCrl && unifiedCrlOnExistingPaths

/** Former shard counts whose lists are kept. */
export const formerShardsOf = ({ shards, points = [] }: CrlSettings): readonly number[] =>
  [...new Set(points.map((point) => point.shards))].filter((count) => count !== shards).toSorted((a, b) => a - b)

function checkShards({ shards }: CrlSettings): void {
  if (shards === 0 || isShardCount(shards)) return
  throw badRequest(`crl_shards must be 0 or a power of two from 2 to ${mostShards}, got: ${shards}`)
}

/** @param leaving the shard count before this change: its lists stay, whatever is kept of earlier ones */
function withoutShards(settings: CrlSettings, kept: readonly number[], leaving: number): CrlSettings {
  const former = formerShardsOf(settings)
  const unknown = kept.find((count) => !former.includes(count))
  if (unknown !== undefined) {
    throw badRequest(`crl_former_shards can only leave out numbers that it has (${former.join(', ')}), got: ${unknown}`)
  }
  const staying = [settings.shards, leaving, ...kept]
  const { points = [], deletedIssuers = [] } = settings
  const left = deletedIssuers.map((one) => ({ ...one, shards: one.shards.filter((count) => staying.includes(count)) }))
  return {
    ...settings,
    points: points.filter(({ shards }) => staying.includes(shards)),
    deletedIssuers: left.filter(({ shards }) => shards.length > 0),
  }
}

function checkDuration(name: string, text: string | undefined): void {
  if (text === undefined) return
  const seconds = readSeconds(text, (reason) => {
    if (/^-\S/.test(text.trim()) && reason.startsWith('cannot provide negative')) {
      throw badRequest(`${name} must be greater than or equal to 0 got: ${text}`)
    }
    const problem = reason.startsWith('expected') ? `time: invalid duration ${JSON.stringify(text)}` : reason
    throw badRequest(`given ${name} could not be decoded: ${problem}`)
  })
  if (text.trim() === '') throw badRequest(`given ${name} could not be decoded: time: invalid duration ""`)
  if (name === 'expiry' && seconds === 0) throw badRequest('expiry must be greater than 0')
}

/** A window is checked when the request sets it, and while its feature is on. */
function checkWindows(settings: CrlSettings, fields: CrlFields): void {
  const { expiry, autoRebuildGracePeriod: grace, deltaRebuildInterval: interval } = settings
  const inside = (window: string): boolean => millisecondsOf(window) < millisecondsOf(expiry)
  if ((settings.autoRebuild || fields.autoRebuildGracePeriod !== undefined) && !inside(grace)) {
    throw badRequest(
      `CRL auto-rebuilding grace period (${grace}) must be strictly shorter than CRL expiry (${expiry}) value when auto-rebuilding of CRLs is enabled`,
    )
  }
  if ((settings.enableDelta || fields.deltaRebuildInterval !== undefined) && !inside(interval)) {
    throw badRequest(
      `CRL delta rebuild window (${interval}) must be strictly shorter than CRL expiry (${expiry}) value when delta CRLs are enabled`,
    )
  }
}

function checkFeatures(settings: CrlSettings): void {
  if (settings.unifiedCrlOnExistingPaths && !settings.unifiedCrl) {
    throw badRequest('unified_crl_on_existing_paths cannot be enabled if unified_crl is disabled')
  }
  if (settings.autoRebuild) return
  if (settings.enableDelta) {
    throw badRequest(
      'Delta CRLs cannot be enabled when auto rebuilding is disabled as the complete CRL is always regenerated!',
    )
  }
  if (settings.crossClusterRevocation) {
    throw badRequest(
      'Global, cross-cluster revocation queue cannot be enabled when auto rebuilding is disabled as the local cluster may not have the certificate entry!',
    )
  }
  if (settings.unifiedCrl) {
    throw badRequest(
      'unified_crl=true requires auto_rebuild=true, as unified CRLs cannot be rebuilt on every revocation.',
    )
  }
}

/** Two runs of the job that builds due lists. */
const shortestGraceSeconds = 120

/** Warnings about settings that are accepted nevertheless. */
export function adviceOn({ autoRebuild, autoRebuildGracePeriod: grace, disable }: CrlSettings): string[] {
  if (!autoRebuild || disable || millisecondsOf(grace) >= shortestGraceSeconds * 1000) return []
  return [
    `auto_rebuild_grace_period (${grace}) is below ${shortestGraceSeconds}s: lists that are due are looked for once a minute, so that one may expire before the next is out`,
  ]
}

/** Whether a change requires new lists. */
export const needsRebuild = (before: CrlSettings, after: CrlSettings): boolean =>
  before.disable !== after.disable ||
  before.enableDelta !== after.enableDelta ||
  before.unifiedCrl !== after.unifiedCrl ||
  before.localSince !== after.localSince ||
  JSON.stringify(before.points) !== JSON.stringify(after.points) ||
  (before.autoRebuild && !after.autoRebuild)
