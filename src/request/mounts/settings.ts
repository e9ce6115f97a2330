import type { MountRow } from './mount.ts'
import { readTuning, retune } from './tuning.ts'

/** A mount to make; `config` as the caller sent it. */
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

/** Settings to change; what is left out stays. */
export interface TuneRequest {
  readonly description?: string | undefined
  /** Added to those there are; an empty value takes one away. */
  readonly options?: Readonly<Record<string, string>> | undefined
  /** Converted values of `tunable` fields. */
  readonly config: Readonly<Record<string, unknown>>
}

/** The settings of a mount, as its row keeps them. */
export type MountSettings = Pick<MountRow, 'description' | 'config' | 'options' | 'local' | 'sealWrap'>

/** @throws {ApiError} 400 that names the field */
export const settingsOf = (request: MountRequest): MountSettings => ({
  description: request.description ?? '',
  config: readTuning(request.config),
  options: request.options ?? null,
  local: request.local ?? false,
  sealWrap: request.sealWrap ?? false,
})

/**
 * The settings that a change replaces.
 * @throws {ApiError} 400 that names the field
 */
export const tunedSettings = (
  row: MountRow,
  { description, options, config }: TuneRequest,
): Partial<MountSettings> => ({
  config: retune(row.config, config),
  ...(description === undefined ? {} : { description }),
  ...(options === undefined ? {} : { options: mergedOptions(row.options, options) }),
})

function mergedOptions(before: MountRow['options'], changes: Readonly<Record<string, string>>): MountRow['options'] {
  const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== '')
  return entries.length === 0 ? null : Object.fromEntries(entries)
}
