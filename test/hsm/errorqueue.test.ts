import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect, TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { privateKeyOf } from '../../src/crypto/privatekey.ts'
import { loadLibrary } from '../../src/hsm/binding.ts'
import { CKF } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { spell } from '../../src/hsm/template.ts'
import { aesTemplate, gcm, newAes, openHsm, theToken } from './support/open.ts'

/**
 * A module that shares OpenSSL with node leaves errors in the thread's queue, where other code takes them for its own.
 */

const pkcs8 = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' })

/** Has the token refuse a tampered blob. */
async function refusal(hsm: Hsm): Promise<() => Promise<void>> {
  const { kwp } = hsm.capabilities
  const kek = await newAes(hsm, ['wrap', 'unwrap'])
  const blob = await hsm.wrap(kek, kwp, await newAes(hsm, ['encrypt'], { extractable: true }))
  blob.writeUInt8(blob.readUInt8(3) ^ 1, 3)
  return () =>
    expect((async () => hsm.unwrap(kek, kwp, blob, aesTemplate(['encrypt'])))()).rejects.toBeInstanceOf(HsmRefusal)
}

test('a call that the token refuses spoils no key that is read next', async () => {
  await using open = await openHsm({ executor: 'inline' })
  const { hsm } = open
  const refuse = await refusal(hsm)
  const key = await newAes(hsm, ['decrypt'])
  const forge = () => expect(async () => hsm.decrypt(key, gcm(randomBytes(12)), randomBytes(40))).rejects.toThrow()
  for (const attempt of [refuse, forge]) {
    await attempt()
    expect(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).asymmetricKeyType).toBe('ed25519')
  }
})

test('a call that the token refuses ends no TLS connection', async () => {
  await using open = await openHsm({ executor: 'inline' })
  const refuse = await refusal(open.hsm)
  await using server = await echo(refuse)
  const client = connect({ port: server.port, host: '127.0.0.1', ALPNProtocols: [], ...anonymous })
  await once(client, 'secureConnect')
  for (let turns = 0; turns < 10; turns++) {
    client.write('m')
    const [answer] = await once(client, 'data')
    expect(String(answer)).toBe('m')
    await refuse()
  }
  client.destroy()
})

test('a key is read whatever a call has left behind', async () => {
  await using open = await openHsm({ executor: 'inline' })
  const { hsm } = open
  const { library } = await theToken()
  const lib = loadLibrary(library)
  const session = lib.C_OpenSession(hsm.token.slot, CKF.SERIAL_SESSION | CKF.RW_SESSION)
  const kek = await newAes(hsm, ['unwrap'])
  const template = spell(aesTemplate(['encrypt']), 'unwrap', hsm.capabilities.dialect)
  const mechanism = { mechanism: hsm.capabilities.kwp }
  for (let times = 0; times < 3; times++) {
    expect(() => lib.C_UnwrapKey(session, mechanism, kek.value, randomBytes(40), template)).toThrow(/CKR_/)
    expect(privateKeyOf(pkcs8).asymmetricKeyType).toBe('ed25519')
  }
  lib.C_CloseSession(session)
})

/** TLS without certificates: only the fate of the connection is tested. */
const anonymous = {
  ciphers: 'aNULL:@SECLEVEL=0',
  maxVersion: 'TLSv1.2',
  rejectUnauthorized: false,
  checkServerIdentity: () => undefined,
} as const

/** A TLS server in this thread that echoes its input, after `before`. */
async function echo(before: () => Promise<void>): Promise<AsyncDisposable & { port: number }> {
  const serve = async (raw: Socket) => {
    const socket = new TLSSocket(raw, { isServer: true, ...anonymous })
    socket.on('error', () => {}) // The client sees it.
    for await (const message of socket) {
      await before()
      socket.write(message)
    }
  }
  const server = createServer((raw) => void serve(raw).catch(() => {})).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}
