import { randomBytes, randomUUID } from 'node:crypto'
import type { Api } from '../api.ts'
import { multiplyKeys } from '../multiply.ts'
import type { StrongroomNode } from '../node.ts'
import { answer, type Body, base64, get, type Operation, type Operations, once } from '../operation.ts'

const versions = 1000
const names = 1000
const keys = 1_000_000
const count = (number: number): string => number.toLocaleString('en')

/** Strongroom's answer about such a key. */
function keyObject(versions: number): Body {
  const version = {
    residence: 'wrapped',
    state: 'active',
    origin: 'generated',
    created_at: new Date(0),
    created_by: randomUUID(),
    local: true,
    never_extractable: false,
    always_sensitive: true,
    ever_plaintext: false,
    exportable: false,
    fingerprint: null,
  }
  const numbers = Array.from({ length: versions }, (_, index) => index + 1)
  return {
    custody: Object.fromEntries(numbers.map((number) => [number, { ...version, hmac: version }])),
    keys: Object.fromEntries(numbers.map((number) => [number, 1_700_000_000])),
    ...{ name: 'aes', type: 'aes256-gcm96', latest_version: versions, key_size: 0, auto_rotate_period: 0 },
    ...{ min_available_version: 0, min_decryption_version: 1, min_encryption_version: 0, imported_key: false },
    ...{ derived: false, convergent_encryption: false, exportable: false, allow_plaintext_backup: false },
    ...{ supports_encryption: true, supports_decryption: true, supports_signing: false, supports_derivation: true },
    ...{ deletion_allowed: false, soft_deleted: false },
  }
}

function read(name: string, length: number, make: (node: Api) => Promise<unknown>): Operation {
  const object = once(() => keyObject(length))
  return {
    serve: (token) => object(token),
    async ask(node) {
      await make(node)
      return get(`transit/keys/${name}`)
    },
  }
}

/** A backup in Vault's form: a thousand versions at once, where rotations would take a commit each. */
function backup(): string {
  const secret = () => base64(randomBytes(32))
  const ring = Array.from({ length: versions }, (_, index) => [index + 1, { key: secret(), hmac_key: secret() }])
  const policy = { name: 'many', type: 0, latest_version: versions, keys: Object.fromEntries(ring) }
  return base64(Buffer.from(JSON.stringify({ policy })))
}

const page = once(() => ({ keys: Array.from({ length: names }, (_, index) => `first-${index}`) }))

/** Operations without the token. */
export const reads: Operations = {
  'key read': read('aes', 1, (node) => answer(node, 'transit/keys/aes', {})),
  [`key read, ${count(versions)} versions`]: read('many', versions, (node) =>
    node.call('POST', 'transit/restore', { backup: backup() }),
  ),
  [`list ${count(names)} of ${count(keys)} keys`]: {
    serve: (token) => page(token),
    async ask(node: StrongroomNode) {
      await node.call('POST', 'sys/mounts/crowd', { type: 'transit' })
      await node.call('POST', 'crowd/keys/first', {})
      await multiplyKeys(node.database, 'first', keys)
      return get(`crowd/keys?list=true&limit=${names}&after=first-${keys / 2}`)
    },
  },
}
