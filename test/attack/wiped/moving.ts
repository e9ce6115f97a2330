import { createPrivateKey } from 'node:crypto'
import { Arithmetic } from '../../../src/crypto/arithmetic.ts'
import { base64, fresh, hello } from '../../api/node.ts'
import { envelopeOf } from '../../api/transit/envelope.ts'
import blobs from '../../api/transit/fixtures/vaultblobs.json' with { type: 'json' }
import { isPair, type Key, named, newKey, numbersOf, type Type, types } from './keys.ts'
import { at, type Calls, forEach, type Secrets, type Work } from './work.ts'

/** Keys that come to Transit or leave it. */

const leaving = { exportable: true, allow_plaintext_backup: true }

export async function imported(
  calls: Calls,
  type: Type,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<Key & { readonly name: string }> {
  const [name, key] = [fresh('w'), newKey(type)]
  await calls.post(`transit/keys/${name}/import`, { ciphertext: await envelope(calls, key), type, ...settings })
  return { name, ...key }
}

const envelope = async (calls: Calls, { bytes }: Key): Promise<string> =>
  envelopeOf((await calls.get('transit/wrapping_key')).string('data.public_key'), bytes)

const formOf = (type: Type): string => (type === 'hmac' ? 'hmac-key' : isPair(type) ? 'signing-key' : 'encryption-key')

/** The secrets in an answer of export: base64 of secrets, DER of pairs. */
function exportedSecrets(reply: { readonly body: unknown }, type: Type): Secrets {
  const { keys } = (reply.body as { data: { keys: Record<string, string> } }).data
  return Object.assign(
    {},
    ...Object.entries(keys).map(([version, text]) => {
      const bytes = Buffer.from(text, 'base64')
      if (!isPair(type)) return { [`secret ${version}`]: bytes }
      const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
      return named(version, numbersOf(key.export({ format: 'der', type: 'pkcs8' })))
    }),
  )
}

const ofEachType = (type: Type): readonly Work[] => [
  {
    title: `import of ${type}`,
    through: at('transit', 'POST keys/:name/import', 'POST keys/:name/import_version'),
    async run(calls) {
      const { name, secrets } = await imported(calls, type)
      const second = newKey(type)
      await calls.post(`transit/keys/${name}/import_version`, { ciphertext: await envelope(calls, second) })
      return { ...named(1, secrets), ...named(2, second.secrets) }
    },
  },
  {
    title: `exports of ${type}`,
    through: at('transit', 'POST keys/:name/config', 'GET export/:key_type/:name'),
    async run(calls) {
      const { name, secrets } = await imported(calls, type)
      await calls.post(`transit/keys/${name}/config`, leaving)
      for (const format of isPair(type) ? ['', 'der', 'pem'] : ['']) {
        await calls.get(`transit/export/${formOf(type)}/${name}?format=${format}`)
      }
      return secrets
    },
  },
  {
    title: `birth, rotation and export of ${type}`,
    through: at('transit', 'POST keys/:name', 'POST keys/:name/rotate', 'GET export/:key_type/:name/:version'),
    async run(calls) {
      const name = fresh('w')
      await calls.post(`transit/keys/${name}`, { type, exportable: true })
      await calls.post(`transit/keys/${name}/rotate`)
      const [keys, hmac] = [
        await calls.get(`transit/export/${formOf(type)}/${name}/2?format=${isPair(type) ? 'der' : ''}`),
        await calls.get(`transit/export/hmac-key/${name}/1`),
      ]
      return { ...exportedSecrets(keys, type), ...named('HMAC', exportedSecrets(hmac, 'hmac')) }
    },
  },
  {
    title: `backup and restore of ${type}`,
    through: at('transit', 'GET backup/:name', 'POST restore/:name*'),
    async run(calls) {
      const { name, secrets } = await imported(calls, type, leaving)
      const backup = (await calls.get(`transit/backup/${name}`)).string('data.backup')
      await calls.post(`transit/restore/${fresh('w')}`, { backup })
      return secrets
    },
  },
  {
    title: `byok-export of ${type}`,
    through: at('transit', 'GET byok-export/:dst/:src', 'GET byok-export/:dst/:src/:version'),
    async run(calls) {
      const { name, secrets } = await imported(calls, type, leaving)
      await calls.post('transit/keys/recipient', { type: 'rsa-2048' })
      for (const version of ['', '/1']) await calls.get(`transit/byok-export/recipient/${name}${version}`)
      return secrets
    },
  },
]

interface Archive {
  readonly archived_keys: { readonly keys: readonly Entry[] }
}

interface Entry {
  readonly key: string | null
  readonly hmac_key: string
  readonly ec_d: string | null
  readonly rsa_key: { readonly D: string; readonly Primes: readonly string[] } | null
}

function numberOf(digits: string): Buffer {
  using arithmetic = new Arithmetic()
  return Buffer.from(arithmetic.decimal(digits))
}

const textOf = (blob: string): string => Buffer.from(blob, 'base64').toString()

/** The secrets in the latest version of a backup of Vault, or in one counted from its end. */
function secretsOfVault(blob: string, index = -1): Secrets {
  const quoted = textOf(blob).replace(/([:[,])(\d{16,})/g, '$1"$2"')
  const entry = (JSON.parse(quoted) as Archive).archived_keys.keys.at(index)
  if (entry === undefined) throw new Error('a backup without this version')
  const { key, hmac_key, ec_d, rsa_key } = entry
  const numbers = rsa_key === null ? [] : [rsa_key.D, ...rsa_key.Primes]
  return {
    HMAC: Buffer.from(hmac_key, 'base64'),
    ...(key === null ? {} : { seed: Buffer.from(key, 'base64').subarray(0, 32) }),
    ...(ec_d === null ? {} : { scalar: numberOf(ec_d) }),
    ...Object.fromEntries(numbers.map((digits, index) => [`number ${index}`, numberOf(digits)])),
  }
}

const ofVault = ['aes256', 'chacha', 'ed25519', 'hmac-vault', 'p256', 'p384', 'p521', 'rsa2048'] as const
const derivedOfVault = ['derived-counter', 'derived-hkdf', 'convergent-3'] as const

const fromVault: readonly Work[] = [
  {
    title: 'a refused restore of Vault’s aes256',
    through: [],
    async run(calls) {
      const { keys } = (JSON.parse(textOf(blobs.aes256)) as Archive).archived_keys
      const spoiled = textOf(blobs.aes256).replaceAll(keys.at(-1)?.key ?? '', '!')
      await calls.refused(`transit/restore/${fresh('v')}`, { backup: base64(spoiled) })
      return secretsOfVault(blobs.aes256, -2)
    },
  },
  ...forEach(ofVault, (name) => ({
    title: `restore of Vault’s ${name}`,
    through: at('transit', 'POST restore/:name*'),
    async run(calls) {
      await calls.post(`transit/restore/${fresh('v')}`, { backup: blobs[name] })
      return secretsOfVault(blobs[name])
    },
  })),
  ...forEach(derivedOfVault, (name) => ({
    title: `restore and use of Vault’s ${name}`,
    through: at('transit', 'POST restore'),
    async run(calls) {
      await calls.post('transit/restore', { backup: blobs[name] })
      await calls.post(`transit/encrypt/${name}`, { plaintext: hello, context: hello })
      return secretsOfVault(blobs[name])
    },
  })),
]

export const moves: readonly Work[] = [...types.flatMap(ofEachType), ...fromVault]
