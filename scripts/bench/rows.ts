import type { StrongroomNode } from './node.ts'
import { batchItems, message, type OperationName } from './operations.ts'
import type { LoadRequest } from './server.ts'

/** One line of the table. */
export interface Row {
  readonly title: string
  /** What it is compared with. */
  readonly operation: OperationName
  readonly request: LoadRequest
  /** Operations in one request. */
  readonly items: number
}

/** A token as an application has it: rules that are exact, with a `+` and with a `*`, beside the default policy. */
const policy = `
path "transit/encrypt/aes" { capabilities = ["update"] }
path "transit/encrypt/derived" { capabilities = ["update"] }
path "transit/decrypt/+" { capabilities = ["update"] }
path "transit/hmac/*" { capabilities = ["update"] }
path "transit/sign/+" { capabilities = ["update"] }
`

/** Makes the keys and the token, and says what is asked of the node. */
export async function prepareRows(node: StrongroomNode): Promise<Row[]> {
  await node.call('POST', 'transit/keys/aes', {})
  await node.call('POST', 'transit/keys/derived', { derived: true })
  await node.call('POST', 'transit/keys/ec', { type: 'ecdsa-p256' })
  await node.call('POST', 'sys/policies/acl/bench', { policy })
  const { auth } = await node.call('POST', 'auth/token/create', { policies: ['bench'], ttl: '24h' })
  const headers = { 'X-Vault-Token': (auth as { client_token: string }).client_token }
  const plaintext = message.toString('base64')
  const { data } = await node.call('POST', 'transit/encrypt/aes', { plaintext })
  const post = (path: string, body: object): LoadRequest => ({
    method: 'POST',
    path: `/v1/transit/${path}`,
    headers,
    body: JSON.stringify(body),
  })
  const health: LoadRequest = { method: 'GET', path: '/v1/sys/health', headers: {}, body: undefined }
  const { ciphertext } = data as { ciphertext: string }
  const batch = Array.from({ length: batchItems }, () => ({ plaintext }))
  return [
    { title: 'sys/health', operation: 'health', request: health, items: 1 },
    { title: 'encrypt 64 B', operation: 'encrypt', request: post('encrypt/aes', { plaintext }), items: 1 },
    {
      title: 'encrypt 64 B, derived: 10,000 contexts',
      operation: 'encrypt',
      request: { ...post('encrypt/derived', { plaintext, context: '00000000' }), variants: 10_000 },
      items: 1,
    },
    { title: 'decrypt 64 B', operation: 'decrypt', request: post('decrypt/aes', { ciphertext }), items: 1 },
    { title: 'hmac sha2-256', operation: 'hmac', request: post('hmac/aes', { input: plaintext }), items: 1 },
    { title: 'sign ecdsa-p256', operation: 'sign', request: post('sign/ec', { input: plaintext }), items: 1 },
    {
      title: `encrypt ${batchItems} × 64 B`,
      operation: 'batch',
      request: post('encrypt/aes', { batch_input: batch }),
      items: batchItems,
    },
  ]
}
