import { describe, expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import type { Reply } from '../../support/client.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { bundleOf } from './outside.ts'

/** Sixteen requests at once, or two that contradict each other: no 5xx, nothing lost, nothing done twice. */

const node = useNode({ workers: 2 })
const sixteen = Array.from({ length: 16 }, (_, index) => index)
const at16 = (ask: (index: number) => Promise<Reply>): Promise<Reply[]> => Promise.all(sixteen.map(ask))
const statusesOf = (replies: readonly Reply[]): readonly number[] => replies.map(({ status }) => status).toSorted()
const count = (replies: readonly Reply[], status: number): number =>
  replies.filter((reply) => reply.status === status).length
const keysOf = async (pki: TestAuthority, list: string): Promise<readonly string[]> => {
  const reply = await pki.list(list)
  return reply.status === 404 ? [] : (dataOf(await done(Promise.resolve(reply))).keys as string[])
}

/** Every issuer that once had a key still has one, and signs with it. */
async function expectWhole(pki: TestAuthority): Promise<void> {
  const keys = await keysOf(pki, 'keys')
  for (const id of await keysOf(pki, 'issuers')) {
    const { key_id: key } = dataOf(await done(pki.get(`issuer/${id}`)))
    if (key === '') continue
    expect(keys).toContain(key)
    expect((await pki.post(`issuer/${id}/issue/r`, { common_name: 'a.example', ttl: '1m' })).status).toBe(200)
  }
  for (const id of keys) expect((await pki.get(`key/${id}`)).status).toBe(200)
}

describe('sixteen at once', () => {
  test('imports of one bundle make it there once', async () => {
    const pki = await createAuthority(node)
    await pki.role('r')
    const { bundle } = bundleOf('Imported')
    const replies = await at16(() => pki.post('issuers/import/bundle', { pem_bundle: bundle }))
    expect(statusesOf(replies)).toEqual(sixteen.map(() => 200))
    const answers = replies.map(dataOf)
    expect(answers.filter(({ imported_issuers: issuers }) => issuers !== null)).toHaveLength(1)
    expect(answers.filter(({ imported_keys: keys }) => keys !== null)).toHaveLength(1)
    const [issuer] = await keysOf(pki, 'issuers')
    const [key] = await keysOf(pki, 'keys')
    for (const answer of answers) {
      expect(answer.mapping).toEqual({ [issuer ?? '']: key })
      expect([answer.imported_issuers ?? answer.existing_issuers]).toEqual([[issuer]])
      expect([answer.imported_keys ?? answer.existing_keys]).toEqual([[key]])
    }
    expect([await keysOf(pki, 'issuers'), await keysOf(pki, 'keys')]).toEqual([[issuer], [key]])
    await expectWhole(pki)
  })

  test('roots of one name: one is made', async () => {
    const pki = await createAuthority(node)
    await pki.role('r')
    const wanted = { common_name: 'R', key_type: 'ec', ttl: '87600h', issuer_name: 'one', key_name: 'one' }
    const replies = await at16(() => pki.post('root/generate/internal', wanted))
    expect([count(replies, 200), count(replies, 400)]).toEqual([1, 15])
    expect([await keysOf(pki, 'issuers'), await keysOf(pki, 'keys')].map(({ length }) => length)).toEqual([1, 1])
    expect(await keysOf(pki, 'certs')).toHaveLength(1)
    await expectWhole(pki)
  })

  test('rotations of the root: one is named next, all are there', async () => {
    const pki = await createAuthority(node)
    await pki.role('r')
    const replies = await at16(() =>
      pki.post('root/rotate/internal', { common_name: 'R', key_type: 'ec', ttl: '87600h' }),
    )
    expect(count(replies, 200)).toBe(16)
    expect(replies.filter((reply) => dataOf(reply).issuer_name === 'next')).toHaveLength(1)
    expect(await keysOf(pki, 'issuers')).toHaveLength(16)
    expect(await keysOf(pki, 'certs')).toHaveLength(16)
    await expectWhole(pki)
  })

  test('names for one key: each answer has its own', async () => {
    const pki = await createAuthority(node)
    const { key_id: id } = await pki.root()
    const replies = await at16((index) => pki.post(`key/${id}`, { key_name: `n${index}` }))
    expect(replies.map((reply) => dataOf(reply).key_name)).toEqual(sixteen.map((index) => `n${index}`))
  })

  test('keys for one name: one has it', async () => {
    const pki = await createAuthority(node)
    const made = await at16(() => pki.post('keys/generate/internal', { key_type: 'ec' }))
    const ids = made.map((reply) => String(dataOf(reply).key_id))
    expect(new Set(ids).size).toBe(16)
    const named = await at16((index) => pki.post(`key/${ids[index]}`, { key_name: 'one' }))
    expect([count(named, 200), count(named, 400)]).toEqual([1, 15])
    expect(await keysOf(pki, 'keys')).toEqual(ids.toSorted())
  })

  test('settings of one issuer: each answer is its own change', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    const url = (index: number) => `http://${index}.example`
    const replies = await at16((index) => pki.patch('issuer/one', { ocsp_servers: url(index) }))
    expect(replies.map((reply) => dataOf(reply).ocsp_servers)).toEqual(sixteen.map((index) => [url(index)]))
  })

  test('roles and URLs: each answer is its own change', async () => {
    const pki = await createAuthority(node)
    const roles = await at16((index) => pki.post('roles/one', { key_type: 'ec', ttl: 60 + index }))
    expect(roles.map((reply) => dataOf(reply).ttl)).toEqual(sixteen.map((index) => 60 + index))
    const urls = await at16((index) => pki.post('config/urls', { ocsp_servers: `http://${index}.example` }))
    expect(urls.map((reply) => dataOf(reply).ocsp_servers)).toEqual(sixteen.map((index) => [`http://${index}.example`]))
    const clusters = await at16((index) => pki.post('config/cluster', { path: `http://${index}.example` }))
    expect(clusters.map((reply) => dataOf(reply).path)).toEqual(sixteen.map((index) => `http://${index}.example`))
  })

  test('certificates have different serial numbers, and all are listed', async () => {
    const pki = await createAuthority(node)
    const { serial_number: root } = await pki.root()
    await pki.role('r')
    const replies = await at16(() => pki.post('issue/r', { common_name: 'a.example' }))
    const serials = replies.map((reply) => String(dataOf(reply).serial_number))
    expect((await keysOf(pki, 'certs')).toSorted()).toEqual([...new Set([...serials, String(root)])].toSorted())
    expect(new Set(serials).size).toBe(16)
  })

  test('intermediates that come back signed find their keys', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    await pki.role('r')
    const wanted = { common_name: 'Sub', key_type: 'ec' }
    const requests = await at16(() => pki.post('intermediate/generate/internal', wanted))
    const signed = await at16((index) =>
      pki.post('root/sign-intermediate', { csr: dataOf(requests[index] as Reply).csr, ttl: '1h' }),
    )
    const set = await at16((index) =>
      pki.post('intermediate/set-signed', { certificate: dataOf(signed[index] as Reply).certificate }),
    )
    expect(statusesOf(set)).toEqual(sixteen.map(() => 200))
    for (const [index, reply] of set.entries()) {
      const { mapping } = dataOf(reply) as { mapping: Answer }
      expect(Object.values(mapping)).toEqual([dataOf(requests[index] as Reply).key_id])
    }
    expect(await keysOf(pki, 'issuers')).toHaveLength(17)
    expect(dataOf(await pki.get('config/issuers')).default).toBe(root.issuer_id)
    await expectWhole(pki)
  })
})

describe('two that contradict each other', () => {
  const refusedOnly = (replies: readonly Reply[]) =>
    expect([...new Set(statusesOf(replies))].filter((status) => ![200, 204, 400, 404].includes(status))).toEqual([])

  test('deleting an issuer while it issues: every issued certificate is stored', async () => {
    const pki = await createAuthority(node)
    await pki.root({ issuer_name: 'one' })
    await pki.role('r')
    const replies = await at16((index) =>
      index === 8 ? pki.delete('issuer/one') : pki.post('issuer/one/issue/r', { common_name: 'a.example' }),
    )
    refusedOnly(replies)
    for (const reply of replies) {
      const serial = reply.status === 200 ? dataOf(reply)?.serial_number : undefined
      if (serial !== undefined) expect((await pki.get(`cert/${serial}`)).status).toBe(200)
    }
    expect((await pki.post('issuer/one/issue/r', { common_name: 'a.example' })).status).toBe(400)
  })

  test('deleting a key while roots are made with it: no root is left without its key', async () => {
    const pki = await createAuthority(node)
    await pki.role('r')
    for (let round = 0; round < 4; round++) {
      const { key_id: id } = dataOf(await done(pki.post('keys/generate/internal', { key_type: 'ec' })))
      const body = { common_name: 'R', ttl: '87600h', key_ref: id }
      const replies = await at16((index) =>
        index % 4 === round ? pki.delete(`key/${id}`) : pki.post('root/generate/existing', body),
      )
      refusedOnly(replies)
    }
    await expectWhole(pki)
  })

  test('deleting everything while roots, keys and certificates are made', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    const { bundle } = bundleOf('Imported')
    const asks = [
      () => pki.delete('root'),
      () => pki.post('root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '87600h' }),
      () => pki.post('keys/generate/internal', { key_type: 'ec' }),
      () => pki.post('issuers/import/bundle', { pem_bundle: bundle }),
      () => pki.post('issue/r', { common_name: 'a.example', ttl: '1m' }),
      () => pki.post('intermediate/generate/existing', { common_name: 'S' }),
      () => pki.post('config/issuers', { default_follows_latest_issuer: true }),
    ]
    for (let round = 0; round < 3; round++)
      refusedOnly(await at16((index) => (asks[index % asks.length] ?? asks[0])?.() as Promise<Reply>))
    await expectWhole(pki)
    const { default: issuer } = dataOf(await pki.get('config/issuers'))
    const { default: key } = dataOf(await pki.get('config/keys'))
    expect(['', ...(await keysOf(pki, 'issuers'))]).toContain(issuer)
    expect(['', ...(await keysOf(pki, 'keys'))]).toContain(key)
  })

  test('deleting a role while it issues, and a mount while it works', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    refusedOnly(
      await at16((index) => (index === 8 ? pki.delete('roles/r') : pki.post('issue/r', { common_name: 'a.b' }))),
    )
    await pki.role('r')
    const replies = await at16((index) => {
      if (index === 8) return node.root.delete(`sys/mounts/${pki.path}`)
      if (index % 3 === 0) return pki.post('root/generate/internal', { common_name: 'R', key_type: 'ec' })
      return index % 3 === 1 ? pki.post('issue/r', { common_name: 'a.b' }) : pki.post('roles/s', {})
    })
    refusedOnly(replies)
    expect((await pki.get('ca')).status).toBe(404)
  })
})
