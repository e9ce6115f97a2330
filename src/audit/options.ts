import { resolve, sep } from 'node:path'
import { readMilliseconds } from '../duration.ts'
import { badRequest } from '../errors.ts'

/** A file that the device appends to. */
export interface FilePlace {
  readonly kind: 'file'
  readonly path: string
  /** Permission bits of the file; 0 leaves them as they are. */
  readonly mode: number
}

/** A collector of lines. */
export interface SocketPlace {
  readonly kind: 'socket'
  readonly socketType: 'tcp' | 'udp' | 'unix'
  /** host:port, or the path of a unix socket. */
  readonly address: string
  /** Empty and 0 for a unix socket. */
  readonly host: string
  readonly port: number
  /** For connecting, and for each message. */
  readonly timeoutMilliseconds: number
}

/** How a device writes. */
export interface DeviceOptions {
  readonly place: FilePlace | SocketPlace | { readonly kind: 'stdout' }
  /** Stands before every line. */
  readonly prefix: string
  readonly hmacAccessor: boolean
  /** Whether secrets are written in clear. */
  readonly logRaw: boolean
  readonly elideListResponses: boolean
}

type OptionTexts = Readonly<Record<string, string>>

const common = 'format prefix hmac_accessor log_raw elide_list_responses'.split(' ')
const known: Readonly<Record<string, readonly string[]>> = {
  file: [...common, 'file_path', 'path', 'mode'],
  socket: [...common, 'address', 'socket_type', 'write_timeout'],
}

/** The types of devices that this server has. */
export const isDeviceType = (type: string): boolean => Object.hasOwn(known, type)

/** The names in `options` that devices of this type do not have. */
export const unknownOptions = (type: string, options: OptionTexts): string[] =>
  Object.keys(options).filter((name) => known[type]?.includes(name) !== true)

/**
 * Reads the `options` of a device.
 * @throws ApiError 400 naming the option and its allowed values
 */
export function readOptions({
  type,
  options,
}: {
  readonly type: string
  readonly options: OptionTexts
}): DeviceOptions {
  const { format = 'json', prefix = '' } = options
  if (format !== 'json') throw badRequest('option format must be json: other formats are not available on this server')
  if (prefix.length > 100 || /[\p{Cc}{]/u.test(prefix)) {
    throw badRequest('option prefix may have 100 characters, and no control character and no {')
  }
  return {
    place: type === 'socket' ? socketOf(options) : fileOf(options),
    prefix,
    hmacAccessor: flag('hmac_accessor', options.hmac_accessor, true),
    logRaw: flag('log_raw', options.log_raw, false),
    elideListResponses: flag('elide_list_responses', options.elide_list_responses, false),
  }
}

/** Characters of a description, and of all options: a column takes several times as much. */
const longest = { description: 16_000, options: 64_000 }

/**
 * Rules for new devices only, beyond those of `readOptions`. A caller who may enable devices chooses a file that the
 * server appends to, and the beginning of its lines: files lie in one directory, and no prefix makes a line of the file
 * mean anything to another program.
 * @param directory the only directory that may hold audit files
 * @throws ApiError 400
 */
export function checkDevice(
  device: { readonly type: string; readonly description: string; readonly options: OptionTexts },
  directory: string,
): void {
  const { description, options } = device
  if (description.length > longest.description) {
    throw badRequest(`description must not be longer than ${longest.description} characters`)
  }
  if (JSON.stringify(options).length > longest.options) {
    throw badRequest(`options may have ${longest.options} characters, their names included`)
  }
  if (!/^[A-Za-z0-9@_:. -]{0,32}$/.test(options.prefix ?? '')) {
    throw badRequest('option prefix may have 32 letters, digits, @ _ : . - and blanks')
  }
  const { place, prefix } = readOptions(device)
  if (place.kind === 'socket' && prefix !== '') {
    throw badRequest(
      'option prefix is not available for sockets: the program that listens there could take it for a command',
    )
  }
  if (place.kind !== 'file') return
  const within = resolve(directory)
  if (!place.path.startsWith(within.endsWith(sep) ? within : within + sep)) {
    throw badRequest(`option file_path must lie in ${within}: audit.directory of the configuration names another place`)
  }
}

function fileOf(options: OptionTexts): DeviceOptions['place'] {
  const path = options.file_path ?? options.path ?? ''
  const mode = modeOf(options.mode ?? '0600')
  return /^stdout$/i.test(path) ? { kind: 'stdout' } : { kind: 'file', path: pathOf(path), mode }
}

const longestTimeoutMilliseconds = 60_000

function socketOf({ address = '', socket_type: type = '', write_timeout: timeout = '' }: OptionTexts): SocketPlace {
  const socketType = type === '' ? 'tcp' : type
  if (socketType !== 'tcp' && socketType !== 'udp' && socketType !== 'unix') {
    throw badRequest('option socket_type must be tcp, udp or unix')
  }
  const refuse = (reason: string): never => {
    throw badRequest(`option write_timeout: ${reason}`)
  }
  const timeoutMilliseconds = readMilliseconds(timeout === '' ? '2s' : timeout, refuse)
  if (timeoutMilliseconds < 1 || timeoutMilliseconds > longestTimeoutMilliseconds) {
    refuse('it must be at least 1ms and at most 60s')
  }
  return { kind: 'socket', socketType, address, ...endpointOf(socketType, address), timeoutMilliseconds }
}

/** The most bytes of a unix socket's path (sockaddr_un). */
const longestSocketPath = 107

function endpointOf(socketType: string, address: string): { host: string; port: number } {
  if (address === '') throw badRequest('address is required')
  if (socketType === 'unix') {
    const fits = Buffer.byteLength(address) <= longestSocketPath && !address.includes('\0')
    if (address.startsWith('/') && fits) return { host: '', port: 0 }
    throw badRequest(`option address must be the absolute path of a unix socket, ${longestSocketPath} bytes at most`)
  }
  const [, v6, name, digits] = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253})):(\d{1,5})$/.exec(address) ?? []
  const port = Number(digits ?? 0)
  if (port < 1 || port > 65_535) throw badRequest('option address must be host:port or [IPv6]:port')
  return { host: v6 ?? name ?? '', port }
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

/** A bool as Go spells it. */
function flag(name: string, text: string | undefined, usual: boolean): boolean {
  if (text === undefined || text === '') return usual
  if (/^(1|t|T|TRUE|true|True)$/.test(text)) return true
  if (/^(0|f|F|FALSE|false|False)$/.test(text)) return false
  throw badRequest(`option ${name} must be true or false`)
}
