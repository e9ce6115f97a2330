import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enable } from '../audit/device.ts'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { strongroom } from './cli.ts'

const otpLength = 36

let server: TestServer
/** A client without a token. */
let nobody: Client

beforeAll(async () => {
  server = await startServer({ workers: 2 })
  nobody = server.client('')
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const secretCommand = (...more: string[]) =>
  strongroom(['recovery-secret', '--config', server.configFile, ...more], {
    SOFTHSM2_CONF: process.env.SOFTHSM2_CONF ?? '',
  })

async function makeSecret(): Promise<string> {
  const { code, stdout, stderr } = await secretCommand()
  expect(code, stderr).toBe(0)
  return /^recovery_secret: ([0-9A-Za-z]{43})\n$/.exec(stdout)?.[1] ?? ''
}

interface Attempt {
  readonly nonce: string
  readonly otp: string
  readonly encoded_token: string
}

/** Waits for the next try that the node allows. */
async function unlimited(ask: () => ReturnType<Client['get']>) {
  for (;;) {
    const reply = await ask()
    if (reply.status !== 429) return reply
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

const begin = (body: object = {}) => unlimited(() => nobody.call('PUT', 'sys/generate-root/attempt', body))
const update = (body: object) => unlimited(() => nobody.call('PUT', 'sys/generate-root/update', body))
const cancel = () => unlimited(() => nobody.delete('sys/generate-root/attempt'))
const idle = { started: false, nonce: '', progress: 0, required: 1, complete: false, otp_length: otpLength }

/** As `vault operator generate-root -decode` does. */
function decoded(encoded: string, otp: string): string {
  expect(encoded).not.toContain('=')
  const bytes = Buffer.from(encoded, 'base64')
  return Buffer.from(bytes.map((byte, at) => byte ^ otp.charCodeAt(at))).toString()
}

async function rows(): Promise<RowDataPacket[]> {
  const connection = await createConnection(server.database.url)
  const [found] = await connection.query<RowDataPacket[]>('SELECT * FROM recovery').finally(() => connection.end())
  return found
}

describe('sys/generate-root', { shuffle: false }, () => {
  test('is off until the recovery secret is made', async () => {
    expect((await nobody.get('sys/generate-root/attempt')).body).toMatchObject(idle)
    for (const reply of [await begin(), await update({ key: 'x', nonce: 'y' })]) {
      expect(reply.status).toBe(400)
      expect(reply.text).toContain('generate-root is off: strongroom recovery-secret')
    }
    expect((await cancel()).status).toBe(204)
  })

  test('makes a root token of one hour for whoever has the secret, XORed with the OTP of the attempt', async () => {
    const secret = await makeSecret()
    const begun = await begin()
    expect(begun.status, begun.text).toBe(200)
    const { nonce, otp } = begun.body as Attempt
    expect(begun.body).toMatchObject({ started: true, progress: 0, required: 1, complete: false, encoded_token: '' })
    expect(otp).toMatch(/^[0-9A-Za-z]{36}$/)
    const shown = (await nobody.get('sys/generate-root/attempt')).body
    expect(shown).toMatchObject({ started: true, nonce, otp: '' })
    expect((await begin()).text).toContain('root generation already in progress')

    const done = await update({ key: secret, nonce })
    expect(done.body).toMatchObject({ started: false, complete: true, progress: 1, nonce })
    const { encoded_token: encoded } = done.body as Attempt
    const root = server.client(decoded(encoded, otp))
    expect((await root.get('auth/token/lookup-self')).body).toMatchObject({
      data: { policies: ['root'], creation_ttl: 3600 },
    })
    expect((await nobody.get('sys/generate-root/attempt')).body).toMatchObject(idle)
    expect((await update({ key: secret, nonce })).text).toContain('no root generation in progress')
  })

  test('stands at the path of newer command lines too, which read its answers in the envelope', async () => {
    const secret = await makeSecret()
    const path = 'sys/generate-root-token/attempt'
    const begun = await unlimited(() => nobody.call('PUT', path, {}))
    const [nonce, otp] = [begun.string('data.nonce'), begun.string('data.otp')]
    expect((await nobody.get(path)).body).toMatchObject({ data: { started: true, nonce, otp_length: otpLength } })
    expect((await nobody.get('sys/generate-root/attempt')).body).toMatchObject({ started: true, nonce })
    const done = await unlimited(() => nobody.call('PUT', 'sys/generate-root-token/update', { key: secret, nonce }))
    expect(done.body).toMatchObject({ data: { complete: true, progress: 1, nonce } })
    const root = server.client(decoded(done.string('data.encoded_token'), otp))
    expect((await root.get('sys/mounts')).status).toBe(200)
    expect((await nobody.delete(path)).status).toBe(204)
  })

  test('takes the OTP that the client brings, of the right length, and the life that it asks for', async () => {
    const secret = await makeSecret()
    expect((await begin({ otp: 'short' })).text).toContain('OTP string is wrong length')
    expect((await begin({ pgp_key: 'keybase:x' })).text).toContain('pgp_key is not available')
    const otp = 'o'.repeat(otpLength)
    const { nonce, otp: echoed } = (await begin({ otp })).body as Attempt
    expect(echoed).toBe('')
    expect((await update({ key: secret, nonce, ttl: '769h' })).status).toBe(400)
    const { encoded_token: encoded } = (await update({ key: secret, nonce, ttl: '5m' })).body as Attempt
    const { body } = await server.client(decoded(encoded, otp)).get('auth/token/lookup-self')
    expect(body).toMatchObject({ data: { creation_ttl: 300 } })
  })

  test('refuses another secret and another nonce, and goes on', async () => {
    const old = await makeSecret()
    const secret = await makeSecret()
    const { nonce, otp } = (await begin()).body as Attempt
    for (const key of [old, server.unsealSecret, server.rootToken, 'x']) {
      expect(await update({ key, nonce })).toMatchObject({
        status: 400,
        body: { errors: ['root generation failed: invalid key'] },
      })
    }
    expect((await update({ key: secret, nonce: 'x' })).text).toContain(
      `incorrect nonce supplied; nonce for this root generation operation is ${nonce}`,
    )
    expect((await update({ nonce })).text).toContain("'key' must be specified")
    // As `cat FILE` gives it.
    const { encoded_token: encoded } = (await update({ key: `${secret}\n`, nonce })).body as Attempt
    expect((await server.client(decoded(encoded, otp)).get('sys/mounts')).status).toBe(200)
  })

  test('of several who bring the secret at once gives one a token', async () => {
    const secret = await makeSecret()
    const { nonce } = (await begin()).body as Attempt
    const replies = await Promise.all([1, 2, 3].map(() => update({ key: secret, nonce })))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('ends an attempt that is cancelled, and all of them when the secret is removed', async () => {
    const secret = await makeSecret()
    const { nonce } = (await begin()).body as Attempt
    expect((await cancel()).status).toBe(204)
    expect((await update({ key: secret, nonce })).text).toContain('no root generation in progress')
    const second = (await begin()).body as Attempt
    expect(await secretCommand('--remove')).toMatchObject({ code: 0, stdout: '' })
    expect((await update({ key: secret, nonce: second.nonce })).text).toContain('generate-root is off')
  })

  test('takes a few tries in a second', async () => {
    await makeSecret()
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => nobody.call('PUT', 'sys/generate-root/update', { key: 'x', nonce: 'y' })),
    )
    const limited = replies.filter(({ status }) => status === 429)
    expect(limited.length).toBeGreaterThan(5)
    expect(limited[0]?.headers['retry-after']).toBe('1')
  })

  test('leaves no secret, pad or token in the audit, nor secret or pad in the database', async () => {
    const device = await enable(server.client())
    const secret = await makeSecret()
    const { nonce, otp } = (await begin()).body as Attempt
    const stored = await rows()
    expect(stored).toHaveLength(1)
    for (const value of Object.values(stored[0] ?? {})) {
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value))
      expect(bytes.includes(otp) || bytes.includes(secret)).toBe(false)
    }
    const { encoded_token: encoded } = (await update({ key: secret, nonce })).body as Attempt
    expect(device.of('sys/generate-root/update')).not.toHaveLength(0)
    expect(device.of('sys/recovery-secret')).toHaveLength(2)
    for (const word of [secret, otp, encoded, decoded(encoded, otp)]) expect(device.text()).not.toContain(word)
    await device.disable()
  })
})
