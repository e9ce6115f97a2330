import { Answer, type Mount, type Outcome } from '../route.ts'
import type { RawRequest } from './exchange.ts'

const none: Readonly<Record<string, string>> = {}
/** However a mount is tuned, the credential never leaves the pipeline. */
const credentials: ReadonlySet<string> = new Set(['x-vault-token', 'authorization'])

/** The header names in a setting of the mount, in lower case. */
export function namesIn(mount: Mount, setting: string): readonly string[] {
  const names = mount.config[setting]
  return Array.isArray(names) ? names.map((name) => String(name).toLowerCase()) : []
}

/** The request headers passed to the engine: those named in the mount's passthrough_request_headers. */
export function passRequestHeaders(mount: Mount, headers: RawRequest['headers']): Readonly<Record<string, string>> {
  if (mount.config.passthrough_request_headers === undefined) return none
  const passed: Record<string, string> = {}
  for (const name of namesIn(mount, 'passthrough_request_headers')) {
    const value = headers[name]
    if (value === undefined || credentials.has(name)) continue
    passed[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return passed
}

/**
 * The answer of a mounted engine with only the headers named in allowed_response_headers; sys/ and auth/ may set any.
 */
export function restrictResponseHeaders(mount: Mount, outcome: Outcome): Outcome {
  if (mount.uuid === '' || !(outcome instanceof Answer)) return outcome
  const set = Object.entries(outcome.headers)
  if (set.length === 0) return outcome
  const allowed = namesIn(mount, 'allowed_response_headers')
  return outcome.withHeaders(Object.fromEntries(set.filter(([name]) => allowed.includes(name.toLowerCase()))))
}
