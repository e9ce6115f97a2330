import { constants, createCipheriv, publicEncrypt, randomBytes } from 'node:crypto'
import type { Api } from '../api.ts'
import type { Changes, Step } from './change.ts'
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

/** A key for each client. */
async function keyOfEach(node: Api, clients: number): Promise<(client: number) => string> {
  const name = prefix()
  for (let client = 0; client < clients; client++) await node.call('POST', `transit/keys/${name}-${client}`, {})
  return (client) => `transit/keys/${name}-${client}`
}

const keysOfClient = 200
const changesOfKey = 10

/**
 * Keys for each client, of which each has its turn for some changes: the answer to a rotation lists all versions, and a
 * key that is rotated for as long as a benchmark runs has thousands.
 */
async function keysOfEach(node: Api, clients: number): Promise<(client: number, n: number) => string> {
  const name = prefix()
  const ofClient = async (client: number): Promise<void> => {
    for (let key = 0; key < keysOfClient; key++)
      await node.call('POST', `transit/keys/${name}-${client}-${key}`, {}, client)
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => ofClient(client)))
  return (client, n) => `transit/keys/${name}-${client}-${Math.floor(n / changesOfKey) % keysOfClient}`
}

const create =
  (type: string) =>
  async (node: Api): Promise<Step> => {
    const name = prefix()
    return async (client, n) => void (await node.send('POST', `transit/keys/${name}-${client}-${n}`, { type }, client))
  }

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
      const keys = await keysOfEach(node, clients)
      return async (client, n) => void (await node.send('POST', `${keys(client, n)}/rotate`, {}, client))
    },
    token: newKey,
  },
  config: {
    async prepare(node, clients) {
      const key = await keyOfEach(node, clients)
      return async (client, n) =>
        void (await node.send('POST', `${key(client)}/config`, { deletion_allowed: n % 2 === 0 }, client))
    },
    token: nothing,
  },
  'policy write': {
    async prepare(node) {
      const name = prefix()
      return async (client, n) => {
        const policy = `path "transit/encrypt/k${n}" { capabilities = ["update"] }`
        await node.send('POST', `sys/policies/acl/${name}-${client}`, { policy }, client)
      }
    },
    token: nothing,
  },
  'token create': {
    async prepare(node) {
      return async (client) => void (await node.send('POST', 'auth/token/create', newToken, client))
    },
    token: nothing,
  },
  'token create and revoke': {
    async prepare(node) {
      return async (client) => {
        const { auth } = await node.call('POST', 'auth/token/create', newToken, client)
        const { client_token: token } = auth as { client_token: string }
        await node.send('POST', 'auth/token/revoke', { token }, client)
      }
    },
    token: nothing,
    undoes: true,
  },
  mount: {
    async prepare(node) {
      const name = prefix()
      return async (client, n) =>
        void (await node.send('POST', `sys/mounts/${name}-${client}-${n}`, { type: 'transit' }, client))
    },
    token: nothing,
  },
  import: {
    async prepare(node) {
      const name = prefix()
      const ciphertext = await sealedForImport(node)
      const body = { ciphertext, type: 'aes256-gcm96' }
      return async (client, n) =>
        void (await node.send('POST', `transit/keys/${name}-${client}-${n}/import`, body, client))
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
