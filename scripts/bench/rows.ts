import type { Api } from './api.ts'
import { operationOf } from './operations.ts'
import type { LoadRequest } from './server.ts'

/** One line of the table. */
export interface Row {
  /** Also the title of the operation. */
  readonly title: string
  readonly request: LoadRequest
  /** Operations in one request. */
  readonly items: number
}

/** A token as an application has it: rules that are exact, with a `+` and with a `*`, beside the default policy. */
const policy = `
path "transit/encrypt/aes" { capabilities = ["update"] }
path "transit/encrypt/derived" { capabilities = ["update"] }
path "transit/encrypt/rsa-2048" { capabilities = ["update"] }
path "transit/decrypt/+" { capabilities = ["update"] }
path "transit/rewrap/+" { capabilities = ["update"] }
path "transit/datakey/plaintext/+" { capabilities = ["update"] }
path "transit/hmac/*" { capabilities = ["update"] }
path "transit/sign/+" { capabilities = ["update"] }
path "transit/verify/+" { capabilities = ["update"] }
path "transit/random" { capabilities = ["update"] }
path "transit/hash" { capabilities = ["update"] }
path "transit/keys/+" { capabilities = ["read"] }
path "crowd/keys/" { capabilities = ["list"] }
path "pki/issue/+" { capabilities = ["update"] }
path "pki/sign/+" { capabilities = ["update"] }
`

/** Makes the application's token. @returns a function that prepares a row, as that application, by its title */
export async function prepareRows(node: Api): Promise<(title: string) => Promise<Row>> {
  await node.call('POST', 'sys/policies/acl/bench', { policy })
  const { auth } = await node.call('POST', 'auth/token/create', { policies: ['bench'], ttl: '24h' })
  const headers = { 'X-Vault-Token': (auth as { client_token: string }).client_token }
  return async (title) => {
    const { ask, items = 1 } = operationOf(title)
    return { title, items, request: { headers, ...(await ask(node)) } }
  }
}
