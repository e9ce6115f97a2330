import { expect, test } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import { longestUnderWay, mostTold } from '../../src/metrics/inflight.ts'
import type { RawRequest } from '../../src/request/exchange.ts'
import { InFlight, type UnderWay, underWay } from '../../src/request/inflight.ts'

const clock: Clock = { wall: () => 1_700_000_000_000, monotonic: () => 5000, sleep: async () => undefined }
const raw = (id: string, more: Partial<RawRequest> = {}): RawRequest => ({
  ...{
    id,
    receivedAt: 4000,
    method: 'PUT',
    rawPath: '/v1/raw',
    query: 'pin=1234',
    headers: {},
    body: Buffer.from('body'),
  },
  ...{ remoteAddress: '127.0.0.3', remotePort: 49816, clientCertificate: undefined, ...more },
})
/** One request under way, as reported to other processes once the fields of `known` are filled in. */
function told(known: Partial<UnderWay> = {}, more: Partial<RawRequest> = {}) {
  const inFlight = new InFlight(clock)
  const request = underWay(raw('a', more))
  inFlight.add(request)
  Object.assign(request, known)
  return inFlight.list()[0]
}

test('a request is shown from when it came until it is answered', () => {
  const inFlight = new InFlight(clock)
  const requests = [underWay(raw('a')), underWay(raw('b', { receivedAt: 4500 }))]
  for (const request of requests) inFlight.add(request)
  expect(inFlight.list().map(({ id, startedAt }) => [id, startedAt])).toEqual([
    ['a', 1_699_999_999_000],
    ['b', 1_699_999_999_500],
  ])
  for (const request of requests) inFlight.delete(request)
  expect([inFlight.size, inFlight.list()]).toEqual([0, []])
})

test('its canonical path is shown and nothing else of it: no query, no body, no header, no credential', () => {
  const headers = { 'x-vault-token': 'secret' }
  const shown = told({ path: 'auth/token/lookup/hvs.CAESIJabcdefgh' }, { headers })
  expect(shown).toEqual({
    ...{ id: 'a', method: 'PUT', startedAt: 1_699_999_999_000, client: '127.0.0.3:49816', clientId: '' },
    path: '/v1/auth/token/lookup/hvs.[redacted]',
  })
  expect(told({ path: 'x'.repeat(5000) })?.path).toHaveLength(1000)
})

test.each([
  ['::1', 8200, '[::1]:8200'],
  ['', 0, ''],
])('a client at %j port %i is %j', (remoteAddress, remotePort, client) => {
  expect(told({}, { remoteAddress, remotePort })?.client).toBe(client)
})

test('clients are told apart by their policies, as the reference does where there is no entity', () => {
  const caller = {
    tokenId: 'id',
    accessor: 'acc',
    displayName: 'token',
    maker: 'token x',
    policies: ['web', 'default'],
  }
  // SHA-256 of `default`, DEL, `web`, NUL, `root`, in base64.
  expect(told({ caller })?.clientId).toBe('rpC1cT07Nuoa/uJvpQzUESv/K9eFTz/P6K9OH3e59GM=')
})

test('of very many requests those that have taken longest are told', () => {
  const inFlight = new InFlight(clock)
  for (let index = 0; index < mostTold + 10; index++) inFlight.add(underWay(raw(`${index}`, { receivedAt: index })))
  const own = inFlight.list()
  expect([own.length, own[0]?.id, own.at(-1)?.id]).toEqual([mostTold, '0', `${mostTold - 1}`])
  const [first] = own
  if (first === undefined) throw new Error('the list is empty')
  const all = longestUnderWay([own, [{ ...first, id: 'elder', startedAt: 0 }]])
  expect([all.length, all[0]?.id, all.at(-1)?.id]).toEqual([mostTold, 'elder', `${mostTold - 2}`])
})
