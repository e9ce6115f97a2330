import { hash, randomBytes } from 'node:crypto'
import { answer, base64, bytes, message, type Operations, once, plaintext, post } from '../operation.ts'

const mac = once((token) => token.hmac(message))

/** Operations without a key pair or a ciphertext. */
export const hashes: Operations = {
  'hmac sha2-256': {
    raw: (token) => token.hmac(message),
    serve: (token, body) => ({ hmac: base64(token.hmac(bytes(body.input))) }),
    body: () => ({ input: plaintext }),
    async ask(node) {
      await answer(node, 'transit/keys/aes', {})
      return post('transit/hmac/aes', { input: plaintext })
    },
  },
  'verify hmac': {
    raw: (token) => token.verifyHmac(message, mac(token)),
    serve: (token, body) => ({ valid: token.verifyHmac(bytes(body.input), bytes(body.hmac)) }),
    body: (token) => ({ input: plaintext, hmac: base64(mac(token)) }),
    async ask(node) {
      await answer(node, 'transit/keys/aes', {})
      const { hmac } = await answer(node, 'transit/hmac/aes', { input: plaintext })
      return post('transit/verify/aes', { input: plaintext, hmac })
    },
  },
  // No token takes part in these two.
  'random 32 B': {
    serve: () => ({ random_bytes: base64(randomBytes(32)) }),
    body: () => ({}),
    ask: async () => post('transit/random', {}),
  },
  'hash sha2-256': {
    serve: (_, body) => ({ sum: hash('sha256', bytes(body.input), 'hex') }),
    body: () => ({ input: plaintext }),
    ask: async () => post('transit/hash', { input: plaintext }),
  },
}
