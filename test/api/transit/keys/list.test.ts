import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { expectData, expectRefused, fresh, useNode } from '../../node.ts'

const node = useNode()

async function mountWith(names: readonly string[]): Promise<string> {
  const mount = await node.mount()
  for (const name of names) await node.root.post(`${mount}/keys/${name}`)
  return mount
}

/** One request as it stands on the wire; the body of the answer. */
function onTheWire(lines: readonly string[]): Promise<unknown> {
  const { hostname, port } = new URL(node.server.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let heard = ''
    socket.on('data', (part) => {
      heard += part
    })
    socket.on('error', reject)
    socket.on('end', () => resolve(JSON.parse(heard.slice(heard.indexOf('\r\n\r\n')))))
    socket.write(`${[...lines, `Host: ${hostname}`, 'Connection: close'].join('\r\n')}\r\n\r\n`)
  })
}

describe('listing keys', () => {
  test('answers the names in the order of their bytes, upper case before lower case', async () => {
    const mount = await mountWith(['b', 'a', 'B', '_x', '10', '9', 'a-1', 'a.1', 'A'])
    expectData(await node.root.list(`${mount}/keys`), { keys: ['10', '9', 'A', 'B', '_x', 'a', 'a-1', 'a.1', 'b'] })
  })

  test('tells names apart that differ in case alone', async () => {
    const mount = await mountWith(['Same', 'same'])
    expectData(await node.root.list(`${mount}/keys`), { keys: ['Same', 'same'] })
    await node.root.post(`${mount}/keys/same/rotate`)
    expect((await node.root.get(`${mount}/keys/Same`)).body).toMatchObject({ data: { latest_version: 1 } })
  })

  test('is 404 with an empty list without keys', async () => {
    expectRefused(await node.root.list(`${await node.mount()}/keys`), 404)
  })

  test('shows nothing of other mounts', async () => {
    const [mine, other] = [await mountWith(['mine']), await mountWith(['other'])]
    expectData(await node.root.list(`${mine}/keys`), { keys: ['mine'] })
    expectData(await node.root.list(`${other}/keys`), { keys: ['other'] })
  })

  test('continues after a name, up to a limit', async () => {
    const mount = await mountWith(['a', 'b', 'c', 'd'])
    expectData(await node.root.list(`${mount}/keys?limit=2`), { keys: ['a', 'b'] })
    expectData(await node.root.list(`${mount}/keys?after=b&limit=1`), { keys: ['c'] })
    expectData(await node.root.list(`${mount}/keys?after=c`), { keys: ['d'] })
    expectRefused(await node.root.list(`${mount}/keys?after=d`), 404)
  })

  test.each(['LIST /v1/PATH/keys', 'LIST /v1/PATH/keys/', 'GET /v1/PATH/keys?list=true', 'GET /PATH/keys/?list=1'])(
    'is asked for by %s',
    async (line) => {
      const mount = await mountWith(['a'])
      const body = await onTheWire([
        `${line.replace('PATH', mount)} HTTP/1.1`,
        `X-Vault-Token: ${node.server.rootToken}`,
      ])
      expect(body).toMatchObject({ data: { keys: ['a'] } })
    },
  )

  test('is not the answer of a GET without list', async () => {
    expectRefused(await node.root.get('transit/keys'), 405, '1 error occurred:\n\t* unsupported operation\n\n')
    expectRefused(
      await node.root.get('transit/keys?list=false'),
      405,
      '1 error occurred:\n\t* unsupported operation\n\n',
    )
    expectRefused(await node.root.get('transit/keys?list=maybe'), 400)
  })

  test('goes through pages of the database without losing or repeating a name', async () => {
    const mount = await node.mount()
    const names = Array.from({ length: 30 }, () => fresh('k')).sort()
    await Promise.all(names.map((name) => node.root.post(`${mount}/keys/${name}`)))
    expectData(await node.root.list(`${mount}/keys`), { keys: names })
  })
})
