import { writePem } from '../../../src/crypto/pem.ts'
import { fresh } from '../../api/node.ts'
import { csrOf } from '../../pki/api/csr.ts'
import type { Reply } from '../../support/client.ts'
import { named, newKey, numbersOfPem, type PairType, pairTypes } from './keys.ts'
import { at, type Calls, parsed, type Secrets, type Work } from './work.ts'

/** Keys of authorities and of the certificates that they issue. */

/** Key type and size as PKI names them. */
const kinds: Readonly<Record<PairType, Readonly<Record<string, unknown>>>> = {
  'rsa-2048': { key_type: 'rsa', key_bits: 2048 },
  'ecdsa-p256': { key_type: 'ec', key_bits: 256 },
  'ecdsa-p384': { key_type: 'ec', key_bits: 384 },
  'ecdsa-p521': { key_type: 'ec', key_bits: 521 },
  ed25519: { key_type: 'ed25519' },
}
const births = [
  'root/generate',
  'issuers/generate/root',
  'root/rotate',
  'intermediate/generate',
  'issuers/generate/intermediate',
  'keys/generate',
] as const
const named24h = (common_name: string) => ({ common_name, ttl: '24h', format: 'pem' })

/** Makes a root whose key is handed out: its certificate and key. */
async function exportedRoot(calls: Calls, type: PairType) {
  const reply = await calls.post('pki/issuers/generate/root/exported', {
    ...named24h(fresh('Root ')),
    ...kinds[type],
    private_key_format: 'pkcs8',
  })
  const [certificate, key] = [reply.string('data.certificate'), reply.string('data.private_key')]
  return { certificate, key, issuer: reply.string('data.issuer_id'), keyId: reply.string('data.key_id') }
}

/** The same root again, as one that is imported. */
async function importedRoot(calls: Calls, type: PairType, path: string) {
  const { certificate, key, issuer, keyId } = await exportedRoot(calls, type)
  await calls.call('DELETE', `pki/issuer/${issuer}`)
  await calls.call('DELETE', `pki/key/${keyId}`)
  await calls.post(`pki/${path}`, { pem_bundle: `${certificate}\n${key}` })
  return { certificate, key }
}

async function roleOf(calls: Calls, type: PairType): Promise<string> {
  const role = fresh('r')
  await calls.post('pki/root/generate/internal', { ...named24h(fresh('Issuer ')), key_type: 'ec' })
  await calls.post(`pki/roles/${role}`, { allow_any_name: true, ...kinds[type] })
  return role
}

const issue = (calls: Calls, path: string, more = {}): Promise<Reply> =>
  calls.post(`pki/${path}`, { common_name: 'a.example', ttl: '1h', ...more })

const secretsIn = (reply: Reply): Secrets => numbersOfPem(reply.string('data.private_key'))

const ofEachType = (type: PairType): readonly Work[] => [
  {
    title: `keys for PKI of ${type}`,
    through: at('pki', 'POST keys/import'),
    async run(calls) {
      const { bytes, secrets } = newKey(type)
      await calls.post('pki/keys/import', { pem_bundle: writePem('PRIVATE KEY', bytes) })
      return secrets
    },
  },
  {
    title: `exported keys of authorities of ${type}`,
    through: at('pki', ...births.map((path) => `POST ${path}/:type`)),
    async run(calls) {
      const all: Secrets[] = []
      for (const path of births) {
        const reply = await calls.post(`pki/${path}/exported`, { ...named24h(fresh('Born ')), ...kinds[type] })
        all.push(named(path, numbersOfPem(reply.string('data.private_key'))))
      }
      return Object.assign({}, ...all)
    },
  },
  {
    title: `bundles of authorities of ${type}`,
    through: at('pki', 'POST issuers/import/bundle', 'POST config/ca'),
    async run(calls) {
      const all: Secrets[] = []
      for (const path of ['issuers/import/bundle', 'config/ca']) {
        all.push(named(path, numbersOfPem((await importedRoot(calls, type, path)).key)))
      }
      return Object.assign({}, ...all)
    },
  },
  {
    title: `leaf keys of ${type}`,
    through: at('pki', 'POST issue/:role', 'POST issuer/:issuer_ref/issue/:role'),
    async run(calls) {
      const role = await roleOf(calls, type)
      const one = await issue(calls, `issue/${role}`)
      const other = await issue(calls, `issuer/default/issue/${role}`, { format: 'pem_bundle' })
      return { ...named(1, secretsIn(one)), ...named(2, secretsIn(other)) }
    },
  },
  {
    title: `keys of ${type} that prove possession`,
    through: at('pki', 'POST revoke-with-key'),
    async run(calls) {
      const made = await issue(calls, `issue/${await roleOf(calls, type)}`)
      const [serial_number, private_key] = [made.string('data.serial_number'), made.string('data.private_key')]
      await calls.post('pki/revoke-with-key', { serial_number, private_key })
      return named(parsed, secretsIn(made))
    },
  },
]

/** SoftHSM wraps no Ed25519 key, so that this one is opened for each signature. */
const signing: Work = {
  title: 'signatures by the opened key of an authority',
  through: at(
    'pki',
    'POST sign-verbatim',
    'POST sign/:role',
    'POST issuer/:issuer_ref/sign-intermediate',
    'GET crl/rotate',
  ),
  async run(calls) {
    const { key } = await importedRoot(calls, 'ed25519', 'issuers/import/bundle')
    const issuers = await calls.call('LIST', 'pki/issuers')
    const issuer_ref = (issuers.body as { data: { keys: readonly string[] } }).data.keys.at(-1)
    const role = fresh('r')
    await calls.post(`pki/roles/${role}`, { allow_any_name: true, key_type: 'any', issuer_ref })
    const csr = await csrOf('/CN=a.example')
    await calls.post('pki/config/issuers', { default: issuer_ref })
    await calls.post('pki/sign-verbatim', { csr, ttl: '1h' })
    await calls.post(`pki/sign/${role}`, { csr, common_name: 'a.example', ttl: '1h' })
    await calls.post(`pki/issuer/${issuer_ref}/sign-intermediate`, { csr, common_name: 'Below', ttl: '1h' })
    await calls.get('pki/crl/rotate')
    return numbersOfPem(key)
  },
}

export const authorities: readonly Work[] = [...pairTypes.flatMap(ofEachType), signing]
