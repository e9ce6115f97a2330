import { setTimeout as delay } from 'node:timers/promises'
import { fresh } from '../../api/node.ts'
import { expectServed } from '../../attack/nodes.ts'
import type { TestServer } from '../../support/server.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { askStatus, issuerOf } from './asking.ts'
import { ocspStatus, type ReadList, readList } from './relying.ts'

/** Lower-case hexadecimal digits without leading zeros, some of which openssl shows in a list. */
export const plain = (serial: string): string => serial.replaceAll(':', '').replace(/^0+/, '')

/** A CA in a mount of its own, as clients see it at any node of its cluster. Serial numbers have colons. */
export type WholeCa = Awaited<ReturnType<typeof createCa>>

/** @param settings of config/crl */
export async function createCa(first: TestServer, settings: Answer = {}) {
  const path = fresh('pki')
  const post = async (node: TestServer, rest: string, body: object = {}): Promise<Answer> => {
    const reply = expectServed(await node.client().post(`${path}/${rest}`, body))
    return reply.body === undefined ? {} : (dataOf(reply) ?? {})
  }
  const mount = { type: 'pki', config: { max_lease_ttl: '87600h' } }
  expectServed(await first.client().post(`sys/mounts/${path}`, mount))
  const made = await post(first, 'root/generate/internal', { common_name: path, key_type: 'ec', ttl: '80000h' })
  const pem = String(made.certificate)
  await post(first, 'roles/r', { allow_any_name: true, key_type: 'ec', max_ttl: '720h' })
  await post(first, 'config/crl', settings)
  const issuer = issuerOf(pem)
  /** Issues. @returns the serial number, and the end in milliseconds */
  const leaf = async (node: TestServer, ttl = '24h') => {
    const issued = await post(node, 'issue/r', { common_name: 'a.example', ttl })
    return { serial: String(issued.serial_number), end: Number(issued.expiration) * 1000 }
  }
  return {
    path,
    pem,
    issuerId: String(made.issuer_id),
    post,
    issue: async (node: TestServer, ttl?: string) => (await leaf(node, ttl)).serial,
    leaf,
    revoke: (node: TestServer, serial: string) => post(node, 'revoke', { serial_number: serial }),
    rotate: async (node: TestServer, kind = 'rotate') =>
      void expectServed(await node.client().get(`${path}/crl/${kind}`)),
    /** With serial numbers as `plain` has them. */
    async list(node: TestServer, rest: string): Promise<ReadList> {
      const list = await readList(expectServed(await node.client('').get(`${path}/${rest}`)).text, pem)
      return { ...list, serials: list.serials.map(plain) }
    },
    status: (node: TestServer, responder: string, serial: string) =>
      ocspStatus(`${node.url}/v1/${path}/${responder}`, pem, serial),
    /** As `status`, but without an openssl process for each answer. */
    statuses: (node: TestServer, responder: string, serials: readonly string[]) =>
      Promise.all(
        serials.map(async (serial) => {
          const url = `${node.url}/v1/${path}/${responder}`
          return (await askStatus({ url, issuer, serial, verb: 'POST' })).status
        }),
      ),
    /** The keys of a LIST; empty for a 404. */
    async keys(node: TestServer, rest: string): Promise<readonly string[]> {
      const reply = await node.client().list(`${path}/${rest}`)
      return reply.status === 404 ? [] : (dataOf(expectServed(reply)).keys as string[]).toSorted()
    },
    /** Tidies at a node, and waits for the end. @returns tidy-status */
    async tidy(node: TestServer, order: Answer): Promise<Answer> {
      await post(node, 'tidy', order)
      for (;;) {
        const status = dataOf(expectServed(await node.client().get(`${path}/tidy-status`)))
        if (status.state !== 'Running') return status
        await delay(50)
      }
    },
  }
}
