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
  /** Nothing is hashed. */
  readonly logRaw: boolean
  readonly elideListResponses: boolean
}

type Given = Readonly<Record<string, string>>

const known: ReadonlySet<string> = new Set(
  'file_path path mode format prefix hmac_accessor log_raw elide_list_responses'.split(' '),
)

/** What stands in `options` and means nothing here. */
export const unknownOptions = (given: Given): string[] => Object.keys(given).filter((name) => !known.has(name))

/**
 * Reads the `options` of a device.
 * @throws ApiError 400 that names the option and what it may hold
 */
export function readOptions(given: Given): DeviceOptions {
  const { format = 'json', prefix = '' } = given
  if (format !== 'json') throw badRequest('option format must be json: other formats are not available on this server')
  if (prefix.length > 100 || /[\p{Cc}{]/u.test(prefix)) {
    throw badRequest('option prefix may have 100 characters, and no control character and no {')
  }
  return {
    filePath: pathOf(given.file_path ?? given.path ?? ''),
    mode: modeOf(given.mode ?? '0600'),
    prefix,
    hmacAccessor: flag('hmac_accessor', given.hmac_accessor, true),
    logRaw: flag('log_raw', given.log_raw, false),
    elideListResponses: flag('elide_list_responses', given.elide_list_responses, false),
  }
}

/**
 * Whoever may enable devices chooses a file that the server writes to, and what stands in it: an operator can bound where.
 * @param directory the only one that may hold audit files, when the configuration says so
 * @throws ApiError 400
 */
export function checkPlace({ filePath }: DeviceOptions, directory: string | undefined): void {
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
