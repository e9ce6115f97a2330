import { X509Certificate } from 'node:crypto'
import { done, fresh, type TestNode } from '../../api/node.ts'
import type { Reply } from '../../support/client.ts'

/** A PKI mount of its own, on the node of a test file. */
export interface TestAuthority {
  /** Without slash. */
  readonly path: string
  get(path: string): Promise<Reply>
  list(path: string): Promise<Reply>
  post(path: string, body?: unknown): Promise<Reply>
  patch(path: string, body: unknown): Promise<Reply>
  delete(path: string): Promise<Reply>
  /** Makes a root on P-256 and returns its data. */
  root(body?: Readonly<Record<string, unknown>>): Promise<Answer>
  role(name: string, body?: Readonly<Record<string, unknown>>): Promise<void>
}

export type Answer = Readonly<Record<string, unknown>>

export const dataOf = (reply: Reply): Answer => (reply.body as { data: Answer }).data
export const warningsOf = (reply: Reply): readonly string[] =>
  (reply.body as { warnings: readonly string[] | null }).warnings ?? []
export const errorsOf = (reply: Reply): readonly string[] => (reply.body as { errors: readonly string[] }).errors

export const certificateOf = (data: Answer, field = 'certificate'): X509Certificate =>
  new X509Certificate(String(data[field]))

/** Enables PKI on a fresh path, with certificates of up to ten years. */
export async function createAuthority(node: TestNode): Promise<TestAuthority> {
  const path = fresh('pki')
  const { root: client } = node
  await done(client.post(`sys/mounts/${path}`, { type: 'pki', config: { max_lease_ttl: '87600h' } }))
  const at = (rest: string): string => `${path}/${rest}`
  return {
    path,
    get: (rest) => client.get(at(rest)),
    list: (rest) => client.list(at(rest)),
    post: (rest, body) => client.post(at(rest), body),
    patch: (rest, body) => client.call('PATCH', at(rest), body, { 'Content-Type': 'application/merge-patch+json' }),
    delete: (rest) => client.delete(at(rest)),
    async root(body = {}) {
      const wanted = { common_name: 'Test Root', key_type: 'ec', ttl: '43800h', ...body }
      return dataOf(await done(client.post(at('root/generate/internal'), wanted)))
    },
    async role(name, body = {}) {
      const wanted = { allow_any_name: true, key_type: 'ec', ...body }
      await done(client.post(at(`roles/${name}`), wanted))
    },
  }
}
