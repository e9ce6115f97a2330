import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { done, hello } from '../api/node.ts'
import type { Client } from '../support/client.ts'

type Data = Readonly<Record<string, unknown>>

/** Sends a request over the client's own connection. @returns the data of its answer @throws Error unless it is 200 */
export type Send = (method: string, path: string, body?: object) => Promise<Data>

/** The requests of one client, sent again and again. */
export type Deed = (send: Send) => Promise<unknown>

export interface Load {
  /** How often each status was answered, and each error ended a request. */
  readonly outcomes: ReadonlyMap<number | string, number>
  /** Lets the requests under way be answered, and sends no more. */
  end(): Promise<void>
}

/** Of a client between two deeds: a machine of two cores has other work too. */
const pauseMilliseconds = 5

/** Clients that each keep a connection and send one request after the other, one client for each deed. */
export function startLoad(base: string, token: string, deeds: readonly Deed[]): Load {
  const outcomes = new Map<number | string, number>()
  let asking = true
  const count = (outcome: number | string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  const running = deeds.map(async (deed) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const send: Send = async (method, path, body) => {
      const answer = await ask(agent, method, `${base}/v1/${path}`, token, body).catch((error) => {
        count(String(error.code ?? error.message))
        throw error
      })
      count(answer.status)
      if (answer.status !== 200) throw new Error(answer.body)
      return JSON.parse(answer.body).data
    }
    while (asking) await Promise.all([deed(send).catch(() => undefined), delay(pauseMilliseconds)])
    agent.destroy()
  })
  const end = async () => {
    asking = false
    await Promise.all(running)
  }
  return { outcomes, end }
}

async function ask(agent: Agent, method: string, url: string, token: string, body?: object) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method, agent, timeout: 20_000, headers: { 'x-vault-token': token } }, resolve)
    sent.once('error', reject).once('timeout', () => sent.destroy(new Error('no answer')))
    sent.end(body && JSON.stringify(body))
  })
  return { status: response.statusCode ?? 0, body: await text(response) }
}

export interface Work {
  readonly deeds: readonly Deed[]
  /** Checks that everything acknowledged is there. */
  verify(): Promise<void>
}

/** So many clients that encrypt, that sign, and that rotate: each of these a key of its own, which it then uses. */
export async function transitWork(root: Client, each: number): Promise<Work> {
  await done(root.post('transit/keys/signing', { type: 'ecdsa-p256' }))
  await done(root.post('transit/keys/used'))
  const ciphertexts: unknown[] = []
  const signatures: unknown[] = []
  const rotated = Array.from({ length: each }, (_, at) => ({ key: `rotated${at}`, latest: 1, used: [''] }))
  for (const { key } of rotated) await done(root.post(`transit/keys/${key}`))
  const encrypt = async (send: Send, key: string) =>
    (await send('POST', `transit/encrypt/${key}`, { plaintext: hello })).ciphertext
  const deeds: readonly Deed[] = rotated.flatMap((own) => [
    async (send) => ciphertexts.push(await encrypt(send, 'used')),
    async (send) => signatures.push((await send('POST', 'transit/sign/signing', { input: hello })).signature),
    async (send) => {
      await send('POST', `transit/keys/${own.key}/rotate`)
      own.latest++
      own.used.push(String(await encrypt(send, own.key)))
    },
  ])
  return {
    deeds,
    async verify() {
      await answersAll(
        root,
        'transit/decrypt/used',
        ciphertexts.map((ciphertext) => ({ ciphertext })),
        { plaintext: hello },
      )
      const signed = signatures.map((signature) => ({ input: hello, signature }))
      await answersAll(root, 'transit/verify/signing', signed, { valid: true })
      for (const { key, latest, used } of rotated) {
        expect((await done(root.get(`transit/keys/${key}`))).body).toMatchObject({ data: { latest_version: latest } })
        const made = used.slice(1)
        // Each by the version of the rotation before it.
        expect(made.map((ciphertext) => ciphertext.split(':')[1])).toEqual(made.map((_, at) => `v${at + 2}`))
        await answersAll(
          root,
          `transit/decrypt/${key}`,
          made.map((ciphertext) => ({ ciphertext })),
          { plaintext: hello },
        )
      }
    },
  }
}

/** Checks that each of several items gets the same result. */
async function answersAll(root: Client, path: string, items: readonly object[], result: object): Promise<void> {
  expect(items.length).toBeGreaterThan(0)
  for (let at = 0; at < items.length; at += 1000) {
    const batch = items.slice(at, at + 1000)
    const { body } = await done(root.post(path, { batch_input: batch }))
    expect(body).toMatchObject({ data: { batch_results: batch.map(() => result) } })
  }
}
