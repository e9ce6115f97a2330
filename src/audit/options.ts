import { resolve, sep } from 'node:path'
import { badRequest } from '../errors.ts'

/** How a file device writes. */
export interface DeviceOptions {
  readonly filePath: string
  /** Permission bits of the file; 0 leaves them as they are. */
  readonly mode: number
  /** Stands before every line. */
  readonly prefix: string
  readonly hmacAccessor: boolean
  /** Whether secrets are written in clear. */
  readonly logRaw: boolean
  readonly elideListResponses: boolean
}

type OptionTexts = Readonly<Record<string, string>>

const known: ReadonlySet<string> = new Set(
  'file_path path mode format prefix hmac_accessor log_raw elide_list_responses'.split(' '),
)

/** The names in `options` that are no options of this server. */
export const unknownOptions = (options: OptionTexts): string[] =>
  Object.keys(options).filter((name) => !known.has(name))

/**
 * Reads the `options` of a device.
 * @throws ApiError 400 naming the option and its allowed values
 */
export function readOptions(options: OptionTexts): DeviceOptions {
  const { format = 'json', prefix = '' } = options
  if (format !== 'json') throw badRequest('option format must be json: other formats are not available on this server')
  if (prefix.length > 100 || /[\p{Cc}{]/u.test(prefix)) {
    throw badRequest('option prefix may have 100 characters, and no control character and no {')
  }
  return {
    filePath: pathOf(options.file_path ?? options.path ?? ''),
    mode: modeOf(options.mode ?? '0600'),
    prefix,
    hmacAccessor: flag('hmac_accessor', options.hmac_accessor, true),
    logRaw: flag('log_raw', options.log_raw, false),
    elideListResponses: flag('elide_list_responses', options.elide_list_responses, false),
  }
}

/**
 * A caller who may enable devices chooses a file that the server writes to, and part of its contents: the configuration
 * can confine audit files to one directory.
 * @param directory the only directory that may hold audit files; undefined allows any
 * @throws ApiError 400
 */
export function checkDirectory({ filePath }: DeviceOptions, directory: string | undefined): void {
  if (directory === undefined || filePath.startsWith(resolve(directory) + sep)) return
  throw badRequest(`option file_path must lie in ${directory}: the configuration of this server says so`)
}

function pathOf(path: string): string {
  if (path === '') throw badRequest('file_path is required')
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('\0')) {
    throw badRequest('option file_path must be the absolute path of a file')
  }
  return resolve(path)
}

function modeOf(text: string): number {
  const mode = /^[0-7]{1,4}$/.test(text) ? Number.parseInt(text, 8) : 0o777
  if ((mode & ~0o666) === 0) return mode
  throw badRequest('option mode must be octal, like 0600, without rights to execute; 0000 leaves the file as it is')
}

/** Go's words for a bool. */
function flag(name: string, text: string | undefined, usual: boolean): boolean {
  if (text === undefined || text === '') return usual
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) return true
  if (/^(0|f|F|FALSE|false|False)$/.test(text)) return false
  throw badRequest(`option ${name} must be true or false`)
}
