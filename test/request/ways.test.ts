import { Type } from 'typebox'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { canonicalise } from '../../src/request/canonicalise.ts'
import { RouteTable } from '../../src/request/routetable.ts'
import type { Method, Mount, Route } from '../../src/route.ts'

const declare = (method: Method, path: string): Route<unknown> => ({
  ...{ method, path, access: 'token', about: path, answers: [], body: Type.Object({}), run: () => undefined },
})
const engines: readonly Engine[] = [
  { type: 'shelf', context: 'a shelf', routes: [declare('GET', 'x/:name'), declare('LIST', 'x')] },
  {
    type: 'box',
    context: 'a box',
    routes: [declare('GET', 'x/:thing')],
    folds: { 'x/:thing': (n) => n.toLowerCase() },
  },
]
const table = new RouteTable(new Map(engines.map((engine) => [engine.type, engine])))
const mountOf = (type: string): Mount => ({ uuid: type, path: 'm/', type, config: {} })

const wayOf = (mount: Mount | undefined, rawPath: string, method = 'GET', query = '') => {
  const sender = { id: '', remoteAddress: '', remotePort: 0, receivedAt: 0, clientCertificate: undefined }
  const head = canonicalise({ ...sender, method, rawPath, query, headers: {}, body: Buffer.alloc(0) })
  const { path, target } = table.way(head, mount)
  return [path, target.context, target.match.endpoint.route.path, target.match.params]
}

test('the way of a request line that was seen before follows the mount that is there now', () => {
  const [shelf, box] = [mountOf('shelf'), mountOf('box')]
  for (let times = 0; times < 2; times++) {
    expect(wayOf(shelf, '/v1/m/x/A')).toEqual(['m/x/A', 'a shelf', 'x/:name', { name: 'A' }])
    expect(wayOf(box, '/v1/m/x/A')).toEqual(['m/x/a', 'a box', 'x/:thing', { thing: 'a' }])
    expect(wayOf(undefined, '/v1/m/x/A')).toEqual(['m/x/A', undefined, '', {}])
  }
})

test('the same path under two methods has two ways', () => {
  const shelf = mountOf('shelf')
  for (let times = 0; times < 2; times++) {
    expect(wayOf(shelf, '/v1/m/x/A')).toEqual(['m/x/A', 'a shelf', 'x/:name', { name: 'A' }])
    expect(wayOf(shelf, '/v1/m/x', 'GET', 'list=true')).toEqual(['m/x', 'a shelf', 'x', {}])
    expect(wayOf(shelf, '/v1/m/x', 'LIST')).toEqual(['m/x', 'a shelf', 'x', {}])
    expect(wayOf(shelf, '/v1/m/x')).toEqual(['m/x', 'a shelf', '', {}])
  }
})
