import { describe, expect, test } from 'vitest'
import { checkAnswer, type Exchange, readContract } from '../support/answers.ts'

const frame = {
  request_id: '6f2c3c5e-1b0a-4a7e-9f53-0c4f8d5e1a2b',
  ...{ lease_id: '', renewable: false, lease_duration: 0, data: null, wrap_info: null, warnings: null, auth: null },
}

/** Checks an answer with this body. */
function check(verb: string, path: string, body: unknown, more: Partial<Exchange> = {}): Promise<void> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const contentType = body === undefined ? '' : 'application/json'
  return checkAnswer({ verb, path, sent: undefined, status: 200, contentType, text, body, ...more })
}

describe('the client of the tests', () => {
  test('accepts declared answers', async () => {
    await check('POST', 'transit/hash', { ...frame, data: { sum: 'ab' } })
    await check('PUT', 'transit/hash/sha2-256', { ...frame, data: { sum: 'ab' }, warnings: ['a'] })
    await check('GET', 'transit/keys?list=true', { ...frame, data: { keys: ['a'] } })
    await check('DELETE', 'transit/keys/a', undefined, { status: 204 })
    await check('GET', 'pki/ca', undefined, { contentType: 'application/pkix-cert', text: 'DER' })
    await check('GET', 'transit/keys/a?help=1', { help: 'a', see_also: [], openapi: {} })
  })

  const hash = { ...frame, data: { sum: 'ab' } }
  test.each([
    ['a member that is not declared', { ...hash, data: { sum: 'ab', more: 1 } }, {}],
    ['a missing member', { ...hash, data: {} }, {}],
    ['a member of another type', { ...hash, data: { sum: 1 } }, {}],
    ['data where there are none', { ...hash, data: null }, {}],
    ['a member beside the envelope', { ...hash, sum: 'ab' }, {}],
    ['an envelope without one of its members', { ...hash, auth: undefined }, {}],
    ['an empty list of warnings', { ...hash, warnings: [] }, {}],
    ['another status', hash, { status: 202 }],
    ['another content type', hash, { contentType: 'text/plain' }],
    ['no content', undefined, { status: 204 }],
  ])('refuses %s', async (_, body, more) => {
    const sent = body && JSON.parse(JSON.stringify(body))
    await expect(check('POST', 'transit/hash', sent, more)).rejects.toThrow('undeclared answer of POST transit/hash')
  })

  test('refuses an answer where no route is declared, and one of a route that always refuses', async () => {
    await expect(check('GET', 'transit/none', frame)).rejects.toThrow('no route answers it')
    await expect(check('POST', 'sys/init', frame)).rejects.toThrow('is not declared')
  })

  test('refuses data that the envelope does not repeat as they are where it must', async () => {
    const data = { term: 1, install_time: '2026-11-22T08:00:00.000Z' }
    await check('GET', 'sys/key-status', { ...frame, data, ...data })
    await expect(check('GET', 'sys/key-status', { ...frame, data })).rejects.toThrow('term is not repeated')
    await expect(check('GET', 'sys/key-status', { ...frame, data, ...data, term: 2 })).rejects.toThrow('term is not')
  })

  test('takes the route that names more of the path', async () => {
    await check('GET', 'pki/cert/ca_chain', {
      ...frame,
      data: { certificate: '', ca_chain: '', revocation_time: 0, revocation_time_rfc3339: '' },
    })
    const tuning = { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false, description: '' }
    await check('GET', 'sys/mounts/a/b/tune', { ...frame, data: tuning, ...tuning })
  })

  test('knows the engine of a mount that was made or moved', async () => {
    const reading = { ...frame, data: { keys: ['a'], key_info: { a: { key_name: '', is_default: true } } } }
    await check('POST', 'sys/mounts/authority', undefined, { status: 204, sent: { type: 'pki' } })
    await check('LIST', 'authority/keys', reading)
    const moved = { migration_id: 'a' }
    const sent = JSON.stringify({ from: 'authority', to: 'other/place' })
    await check('POST', 'sys/remount', { ...frame, data: moved, ...moved }, { sent })
    await check('LIST', 'other/place/keys', reading)
    await check('POST', 'sys/mounts/ciphers', undefined, { status: 204, sent: { type: 'transit' } })
    await expect(check('LIST', 'ciphers/keys', reading)).rejects.toThrow('undeclared answer')
  })
})

test('OpenAPI lists no two schemas under the same name', () => {
  const byTitle = new Map<string, Set<string>>()
  JSON.stringify(readContract(), (_, value) => {
    if (typeof value?.title === 'string') {
      byTitle.set(value.title, (byTitle.get(value.title) ?? new Set()).add(JSON.stringify(value)))
    }
    return value
  })
  expect([...byTitle].filter(([, schemas]) => schemas.size > 1).map(([title]) => title)).toEqual([])
  expect(byTitle.size).toBeGreaterThan(10)
})
