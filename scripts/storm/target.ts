import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** A node under attack, with an audit device, a key `orders` and an authority at `pki/`. */
export interface Target {
  readonly url: string
  readonly rootToken: string
  /** Process id of the supervisor. */
  readonly pid: number
  readonly auditFile: string
  /** The authority's certificate, DER. */
  readonly authority: Buffer
}

/** An attack's cost to the attacker, and the answers. */
export interface Sent {
  readonly bytes: number
  readonly requests: number
  /** How often each status came; `closed` for connections that ended without one. */
  readonly answers: ReadonlyMap<string, number>
}

export interface Attack {
  readonly title: string
  run(target: Target): Promise<Sent>
}

type Call = (method: string, path: string, body?: object) => Promise<unknown>

/** Prepares a node for the attacks. @param call calls the API as root @returns the authority's certificate, PEM */
export async function prepareTarget(call: Call, auditFile: string): Promise<string> {
  mkdirSync(dirname(auditFile), { recursive: true })
  await call('POST', 'sys/audit/file', { type: 'file', options: { file_path: auditFile } })
  await call('POST', 'transit/keys/orders', {})
  await call('POST', 'sys/mounts/pki', { type: 'pki', config: { max_lease_ttl: '87600h' } })
  const root = { common_name: 'Storm Root', key_type: 'ec', ttl: '8760h' }
  const made = (await call('POST', 'pki/root/generate/internal', root)) as { data: { certificate: string } }
  await call('POST', 'pki/roles/web', { allow_any_name: true, key_type: 'any', no_store: true })
  return made.data.certificate
}
