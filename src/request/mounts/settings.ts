import { badRequest } from '../../errors.ts'
import type { MountRow } from './mount.ts'
import { readTuning, retune } from './tuning.ts'

/** A mount to make; `config` as sent by the caller. */
export interface MountRequest {
  /** With or without slash at the end. */
  readonly path: string
  readonly type: string
  readonly description?: string | undefined
  readonly config?: unknown
  readonly options?: Readonly<Record<string, string>> | undefined
  readonly local?: boolean | undefined
  readonly sealWrap?: boolean | undefined
  /** False only at first initialisation: the first `enable` of the same type then takes the mount over. */
  readonly touched?: boolean
}

/** Settings to change; absent ones stay unchanged. */
export interface TuneRequest {
  readonly description?: string | undefined
  /** Added to the existing ones; an empty value removes one. */
  readonly options?: Readonly<Record<string, string>> | undefined
  /** Converted values of `tunable` fields. */
  readonly config: Readonly<Record<string, unknown>>
}

/** The settings of a mount, as stored in its row. */
export type MountSettings = Pick<MountRow, 'description' | 'config' | 'options' | 'local' | 'sealWrap'>

/** @throws {ApiError} 400 naming the field */
export const settingsOf = (request: MountRequest): MountSettings =>
  withinBounds({
    description: request.description ?? '',
    config: readTuning(request.config),
    options: request.options ?? null,
    local: request.local ?? false,
    sealWrap: request.sealWrap ?? false,
  })

/**
 * The settings that a change replaces.
 * @throws {ApiError} 400 naming the field
 */
export const tunedSettings = (row: MountRow, { description, options, config }: TuneRequest): Partial<MountSettings> =>
  withinBounds({
    config: retune(row.config, config),
    ...(description === undefined ? {} : { description }),
    ...(options === undefined ? {} : { options: mergedOptions(row.options, options) }),
  })

/** Most characters of a description, and of the other settings in JSON: a column takes several times as much. */
const longest = { description: 16_000, config: 64_000, options: 64_000 }

function withinBounds<S extends Partial<MountSettings>>(settings: S): S {
  if ((settings.description ?? '').length > longest.description) {
    throw badRequest(`description must not be longer than ${longest.description} characters`)
  }
  for (const name of ['config', 'options'] as const) {
    if (JSON.stringify(settings[name] ?? null).length > longest[name]) {
      throw badRequest(`${name} of a mount must not be longer than ${longest[name]} characters in JSON`)
    }
  }
  return settings
}

function mergedOptions(before: MountRow['options'], changes: Readonly<Record<string, string>>): MountRow['options'] {
  const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== '')
  return entries.length === 0 ? null : Object.fromEntries(entries)
}
