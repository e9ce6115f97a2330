import { constants, createCipheriv, publicEncrypt, randomBytes } from 'node:crypto'
import type { Api } from '../api.ts'
import { type Asked, type Changes, keysOfClient } from './change.ts'
import type { Objects } from './objects.ts'

const newKey = (objects: Objects): void => {
  objects.aes256()
  objects.secret()
}
const nothing = (): void => undefined

const newToken = { policies: ['default'], ttl: '1h' }

/** Names that no run has used before. */
let runs = 0
const prefix = (): string => `r${++runs}`

/** A key for each client. @returns its path */
async function keyOfEach(node: Api, clients: number): Promise<string> {
  const name = prefix()
  for (let client = 0; client < clients; client++) await node.call('POST', `transit/keys/${name}-${client}`, {})
  return `transit/keys/${name}-<client>`
}

/**
 * Keys for each client, of which each has its turn for some changes: the answer to a rotation lists all versions, and a
 * key that is rotated for as long as a benchmark runs has thousands.
 * @returns the path of the key whose turn it is
 */
async function keysOfEach(node: Api, clients: number): Promise<string> {
  const name = prefix()
  const ofClient = async (client: number): Promise<void> => {
    for (let key = 0; key < keysOfClient; key++)
      await node.call('POST', `transit/keys/${name}-${client}-${key}`, {}, client)
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => ofClient(client)))
  return `transit/keys/${name}-<client>-<key>`
}

const create = (type: string) => async (): Promise<Asked> => ({
  path: `transit/keys/${prefix()}-<client>-<n>`,
  body: JSON.stringify({ type }),
})

const createToken: Asked = { path: 'auth/token/create', body: JSON.stringify(newToken) }

/** Every change of the table, in its order. */
export const changes: Changes = {
  'create aes256-gcm96': { prepare: create('aes256-gcm96'), token: newKey },
  'create ecdsa-p256': {
    prepare: create('ecdsa-p256'),
    token(objects) {
      objects.p256()
      objects.secret()
    },
  },
  rotate: {
    async prepare(node, clients) {
      return { path: `${await keysOfEach(node, clients)}/rotate`, body: '{}' }
    },
    token: newKey,
  },
  config: {
    async prepare(node, clients) {
      return { path: `${await keyOfEach(node, clients)}/config`, body: '{"deletion_allowed":<even>}' }
    },
    token: nothing,
  },
  'policy write': {
    async prepare() {
      const policy = 'path "transit/encrypt/k<n>" { capabilities = ["update"] }'
      return { path: `sys/policies/acl/${prefix()}-<client>`, body: JSON.stringify({ policy }) }
    },
    token: nothing,
  },
  'token create': { prepare: async () => createToken, token: nothing },
  'token create and revoke': {
    async prepare() {
      const revoke = { path: 'auth/token/revoke', body: '{"token":"<answer>"}' }
      return { ...createToken, next: { after: '"client_token":"', asked: revoke } }
    },
    token: nothing,
    undoes: true,
  },
  mount: {
    async prepare() {
      return { path: `sys/mounts/${prefix()}-<client>-<n>`, body: '{"type":"transit"}' }
    },
    token: nothing,
  },
  import: {
    async prepare(node) {
      const body = { ciphertext: await sealedForImport(node), type: 'aes256-gcm96' }
      return { path: `transit/keys/${prefix()}-<client>-<n>/import`, body: JSON.stringify(body) }
    },
    token(objects) {
      objects.imported()
      objects.secret()
    },
  },
}

/**
 * An AES key as the import API takes it: an ephemeral key under RSA-OAEP-SHA-256, then the key under AES-KWP (RFC
 * 5649).
 */
async function sealedForImport(node: Api): Promise<string> {
  const { data } = await node.call('GET', 'transit/wrapping_key')
  const ephemeral = randomBytes(32)
  const { public_key: key } = data as { public_key: string }
  const padding = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
  const cipher = createCipheriv('id-aes256-wrap-pad', ephemeral, Buffer.from('a65959a6', 'hex'))
  const wrapped = Buffer.concat([cipher.update(randomBytes(32)), cipher.final()])
  return Buffer.concat([publicEncrypt(padding, ephemeral), wrapped]).toString('base64')
}
