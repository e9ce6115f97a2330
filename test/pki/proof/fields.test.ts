import { expect, test } from 'vitest'
import { table } from '../../../src/engines/pki/index.ts'
import { useNode } from '../../api/node.ts'
import type { Reply } from '../../support/client.ts'
import { createAuthority, type TestAuthority } from '../api/authority.ts'
import { forge } from './forge.ts'

/** A route answers or refuses every value of every field. */

const node = useNode({ workers: 2 })

const values = [
  ...['', '\0', 'ы'.repeat(70), 'x'.repeat(5000), '*', '{{issuer_id}}', 'a@', '1.2.3;UTF8:\0', '0.0.0.0/33'],
  ...['9'.repeat(30), '10000-01-01T00:00:00Z', -1, 2 ** 53, [''], {}, null],
]

/** Routes that write without making RSA keys, and the paths for their requests. */
const writing = Object.values(table).filter(({ method }) => method === 'POST' || method === 'PATCH')
/** Routes of one declaration have the same text: only one of them is tried. */
const posts = [...new Map(writing.map((route) => [`${route.method} ${route.about}`, route])).values()]
const filled = (path: string): string =>
  path
    .replace('roles/:name', 'roles/tried')
    .replace('keys/generate/:type', 'keys/generate/internal')
    .replace(':type', 'existing')
    .replace(':role', 'any')
    .replaceAll(/:(issuer|key)_ref/g, 'default')

async function furnished(): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root({ issuer_name: 'one', key_name: 'one' })
  await pki.role('any', { key_type: 'any', no_store: true })
  await pki.role('tried')
  return pki
}

test.each(posts.map((route) => [`${route.method} ${route.path}`, route] as const))(
  '%s',
  async (_, route) => {
    const pki = await furnished()
    const path = filled(route.path)
    const { properties } = route.body
    const usual = Object.entries({ csr: forge(), common_name: 'a.example', ...keyFor(path) })
    const body = Object.fromEntries(usual.filter(([name]) => name in properties))
    const ask = (field: string, value: unknown): Promise<Reply> =>
      route.method === 'PATCH'
        ? pki.patch(path, { ...body, [field]: value })
        : pki.post(path, { ...body, [field]: value })
    const faults: string[] = []
    for (const field of Object.keys(properties)) {
      // An RSA key for each value would take too long, and prove nothing more.
      const tried = field === 'key_type' ? values.filter((value) => ![null, ''].includes(value as null)) : values
      for (let at = 0; at < tried.length; at += 8) {
        const some = tried.slice(at, at + 8)
        const replies = await Promise.all(some.map((value) => ask(field, value)))
        for (const [index, { status, text }] of replies.entries()) {
          if (status >= 500) faults.push(`${field}=${JSON.stringify(some[index])?.slice(0, 80)}: ${status} ${text}`)
        }
      }
    }
    expect(faults).toEqual([])
  },
  120_000,
)

const keyFor = (path: string): object => (path.includes('existing') ? {} : { key_type: 'ec' })
