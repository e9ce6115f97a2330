import { beforeAll, expect, test } from 'vitest'
import { useDoomed } from '../../attack/deaths/doomed.ts'
import { expectServed } from '../../attack/nodes.ts'
import type { Client } from '../../support/client.ts'
import { dataOf } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/** A node that dies while it revokes, builds and publishes; another one survives. */

const world = useDoomed()
let ca = ''

beforeAll(async () => {
  await post(world.root, 'sys/mounts/pki/tune', { max_lease_ttl: '87600h' })
  const made = await post(world.root, 'pki/root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '80000h' })
  ca = String(made.certificate)
  await post(world.root, 'pki/roles/r', { allow_any_name: true, key_type: 'ec' })
}, 60_000)

async function post(client: Client, path: string, body: object) {
  const reply = expectServed(await client.post(path, body))
  return reply.body === undefined ? {} : dataOf(reply)
}
const plain = (serial: string): string => serial.replaceAll(':', '').replace(/^0+/, '')
const issue = async (): Promise<string> =>
  String((await post(world.root, 'pki/issue/r', { common_name: 'a.example', ttl: '24h' })).serial_number)
async function list() {
  const { number, serials } = await readList(expectServed(await world.root.get('pki/crl/pem')).text, ca)
  return { number, serials: serials.map(plain) }
}
const statusOf = (serial: string) => ocspStatus(`${world.first.url}/v1/pki/ocsp`, ca, serial)
const acknowledged: string[] = []
let last = 0n

/** The law, on the surviving node. */
async function expectLaw(): Promise<void> {
  expectServed(await world.root.get('pki/crl/rotate'))
  const { number, serials } = await list()
  expect(number).toBeGreaterThan(last)
  last = number
  expect(new Set(serials).size).toBe(serials.length)
  expect(serials).toEqual(expect.arrayContaining(acknowledged.map(plain)))
}

/**
 * COMMIT 1 records the revocation; 2 to 6 are those of the build (test/pki/crl/death.test.ts), of which 4 stores its
 * number and 5 publishes the list.
 */
test.each([1, 4, 5].flatMap((nth) => [['before', nth] as const, ['after', nth] as const]))(
  'killed %s COMMIT %i of a revocation: nothing acknowledged is lost, and what was not is revoked when asked again',
  async (when, nth) => {
    const [lost, kept] = [await issue(), await issue()]
    await post(world.root, 'pki/revoke', { serial_number: kept })
    acknowledged.push(kept)
    await world.die(when, (doomed) => doomed.post('pki/revoke', { serial_number: lost }), nth)
    await expectLaw()
    const { serials } = await list()
    expect(await statusOf(lost)).toBe(serials.includes(plain(lost)) ? 'revoked' : 'good')
    await post(world.root, 'pki/revoke', { serial_number: lost })
    acknowledged.push(lost)
    expect((await list()).serials).toEqual(expect.arrayContaining(acknowledged.map(plain)))
    expect(await statusOf(lost)).toBe('revoked')
  },
  60_000,
)
