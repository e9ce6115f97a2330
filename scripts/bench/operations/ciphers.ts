import { constants, createPublicKey, publicEncrypt } from 'node:crypto'
import type { Api } from '../api.ts'
import { answer, base64, bytes, message, type Operations, once, plaintext, post } from '../operation.ts'
import type { RawToken } from '../token.ts'

const keyBytes = 32
const encrypted = once((token) => token.encrypt(message))

/** The token has OAEP with SHA-1 alone: the public half is the host's work, and the private one the raw operation. */
const oaep = once((token) => ({
  key: createPublicKey({ format: 'jwk', key: token.pair('rsa-2048').jwk }),
  padding: constants.RSA_PKCS1_OAEP_PADDING,
  oaepHash: 'sha256',
}))
const oaepEncrypted = once((token) => publicEncrypt(oaep(token), message))
const block = (token: RawToken, ciphertext: Buffer): Buffer => token.pair('rsa-2048').decrypt(ciphertext)

const key = (node: Api, name: string, settings = {}) => answer(node, `transit/keys/${name}`, settings)
async function ciphertextOf(node: Api, name: string, settings = {}): Promise<unknown> {
  await key(node, name, settings)
  return (await answer(node, `transit/encrypt/${name}`, { plaintext })).ciphertext
}

const encrypt: Operations[string] = {
  raw: (token) => token.encrypt(message),
  serve: (token, body) => ({ ciphertext: base64(token.encrypt(bytes(body.plaintext))) }),
  body: () => ({ plaintext }),
  async ask(node) {
    await key(node, 'aes')
    return post('transit/encrypt/aes', { plaintext })
  },
}

export const ciphers: Operations = {
  'encrypt 64 B': encrypt,
  'encrypt 64 B, derived: 10,000 contexts': {
    ...encrypt,
    async ask(node) {
      await key(node, 'derived', { derived: true })
      return { ...post('transit/encrypt/derived', { plaintext, context: '00000000' }), variants: 10_000 }
    },
  },
  'decrypt 64 B': {
    raw: (token) => token.decrypt(encrypted(token)),
    serve: (token, body) => ({ plaintext: base64(token.decrypt(bytes(body.ciphertext))) }),
    body: (token) => ({ ciphertext: base64(encrypted(token)) }),
    ask: async (node) => post('transit/decrypt/aes', { ciphertext: await ciphertextOf(node, 'aes') }),
  },
  'rewrap 64 B': {
    raw: (token) => token.encrypt(token.decrypt(encrypted(token))),
    serve: (token, body) => ({ ciphertext: base64(token.encrypt(token.decrypt(bytes(body.ciphertext)))) }),
    body: (token) => ({ ciphertext: base64(encrypted(token)) }),
    ask: async (node) => post('transit/rewrap/aes', { ciphertext: await ciphertextOf(node, 'aes') }),
  },
  datakey: {
    raw: (token) => token.encrypt(token.random(keyBytes)),
    serve(token) {
      const made = token.random(keyBytes)
      return { ciphertext: base64(token.encrypt(made)), plaintext: base64(made) }
    },
    body: () => ({}),
    async ask(node) {
      await key(node, 'aes')
      return post('transit/datakey/plaintext/aes', {})
    },
  },
  'encrypt rsa-2048 (OAEP)': {
    serve: (token, body) => ({ ciphertext: base64(publicEncrypt(oaep(token), bytes(body.plaintext))) }),
    body: () => ({ plaintext }),
    async ask(node) {
      await key(node, 'rsa-2048', { type: 'rsa-2048' })
      return post('transit/encrypt/rsa-2048', { plaintext })
    },
  },
  'decrypt rsa-2048 (OAEP)': {
    raw: (token) => block(token, oaepEncrypted(token)),
    serve: (token, body) => ({ plaintext: base64(block(token, bytes(body.ciphertext)).subarray(-message.length)) }),
    body: (token) => ({ ciphertext: base64(oaepEncrypted(token)) }),
    ask: async (node) =>
      post('transit/decrypt/rsa-2048', { ciphertext: await ciphertextOf(node, 'rsa-2048', { type: 'rsa-2048' }) }),
  },
}
