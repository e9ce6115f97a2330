import { expect, test } from 'vitest'
import type { Config } from '../../src/config.ts'
import { activatedSockets } from '../../src/supervisor/activation.ts'

const listeners = (...all: [address: string, socket?: string][]) =>
  ({ listeners: all.map(([address, socket]) => ({ address, ...(socket ? { socket } : {}) })) }) as unknown as Pick<
    Config,
    'listeners'
  >
const given = (count: number | string, names?: string, pid = '7') => ({
  LISTEN_FDS: String(count),
  LISTEN_PID: pid,
  ...(names === undefined ? {} : { LISTEN_FDNAMES: names }),
})
const both = listeners(['127.0.0.1:8200', 'api'], ['unix:/run/s.sock', 'local'])

test('sockets go to the listeners that name them, in whatever order they come', () => {
  expect([...activatedSockets(both, given(2, 'local:api'), 7)]).toEqual([
    ['127.0.0.1:8200', { descriptor: 4, owned: false }],
    ['unix:/run/s.sock', { descriptor: 3, owned: false }],
  ])
})

test('a listener without a name is bound as ever, and a socket without a name is called unknown', () => {
  const mixed = listeners(['127.0.0.1:8200', 'unknown'], ['127.0.0.1:8201'])
  expect([...activatedSockets(mixed, given(1), 7)]).toEqual([['127.0.0.1:8200', { descriptor: 3, owned: false }]])
  expect([...activatedSockets(listeners(['127.0.0.1:8201']), {}, 7)]).toEqual([])
  expect([...activatedSockets(listeners(['127.0.0.1:8201']), given(1, 'api', '8'), 7)]).toEqual([])
})

test.each([
  ['missing', given(1, 'api'), 'listeners.1.socket: systemd hands over no socket named local'],
  ['there twice', given(3, 'api:local:local'), 'listeners.1.socket: systemd hands over 2 sockets named local'],
  ['of no listener', given(3, 'api:local:more'), 'a socket named more, and no listener has socket: more'],
  ['of another process', given(2, 'api:local', '8'), 'are for process 8 (LISTEN_PID), and this is 7'],
  ['not there at all', {}, 'listeners.0.socket: systemd hands over no socket named api'],
  ['more than their names', given(2, 'api'), 'LISTEN_FDNAMES: 1 names for the 2 sockets of LISTEN_FDS'],
  ['no number', given('two', 'api:local'), 'LISTEN_FDS: "two" is no number of sockets'],
])('sockets that are %s are refused with an explanation', (_, environment, said) => {
  const refused = () => activatedSockets(both, environment, 7)
  expect(refused).toThrow()
  try {
    refused()
  } catch (error) {
    expect((error as { problems: string[] }).problems.join('\n')).toContain(said)
  }
})
