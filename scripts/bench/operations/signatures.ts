import type { Api } from '../api.ts'
import {
  answer,
  base64,
  bytes,
  plaintext as input,
  message,
  type Operation,
  type Operations,
  once,
  post,
} from '../operation.ts'
import { type PairType, pairTypes } from '../pair.ts'

const key = (node: Api, type: PairType) => answer(node, `transit/keys/${type}`, { type })

const sign = (type: PairType): Operation => ({
  raw: (token) => token.pair(type).sign(message),
  serve: (token, body) => ({ signature: base64(token.pair(type).sign(bytes(body.input))) }),
  // The pair is made before anybody waits for an answer.
  body: (token) => token.pair(type) && { input },
  async ask(node) {
    await key(node, type)
    return post(`transit/sign/${type}`, { input })
  },
})

function verify(type: PairType): Operation {
  const signed = once((token) => token.pair(type).sign(message))
  return {
    raw: (token) => token.pair(type).verify(message, signed(token)),
    serve: (token, body) => ({ valid: token.pair(type).verify(bytes(body.input), bytes(body.signature)) }),
    body: (token) => ({ input, signature: base64(signed(token)) }),
    async ask(node) {
      await key(node, type)
      const { signature } = await answer(node, `transit/sign/${type}`, { input })
      return post(`transit/verify/${type}`, { input, signature })
    },
  }
}

export const signatures: Operations = Object.fromEntries(
  pairTypes.flatMap((type) => [
    [`sign ${type}`, sign(type)],
    [`verify ${type}`, verify(type)],
  ]),
)
