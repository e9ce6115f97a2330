import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashOf } from '../../../src/crypto/hashes.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { wrapSecret } from '../../../src/keys/making/secret.ts'
import type { Draft } from '../../../src/keys/materials/draft.ts'
import { extract } from '../../../src/keys/materials/extraction.ts'
import { type Cluster, useCluster } from '../support.ts'

/** The HMAC key that contexts are fed to, extracted from a root key. */

let cluster: Cluster
useCluster('extraction', (begun) => {
  cluster = begun
})

/** A root of these bytes: made, then its blob replaced by one of them under the same KEK. */
async function rootOf(algorithm: string, secret: Buffer): Promise<Draft> {
  const { hsm, place, custody } = cluster
  const specification = { algorithm, exportable: true, part: 'key', derived: true, createdBy: 'me' } as const
  const { intent, fields } = await custody.materials.prepare(specification)
  const kek = await new Keks(hsm, place.database, false).get(fields.kek ?? '')
  return { intent, fields: { ...fields, blob: await wrapSecret(hsm, kek, secret) } }
}

const context = Buffer.from('context')

/** What the token makes of a context with the extracted key, in hexadecimal. */
async function macOf(draft: Draft): Promise<string> {
  const { place, custody } = cluster
  const owner = { mount: '', key: randomUUID(), version: 1 }
  const { id } = await place.database.transaction((tx) => custody.materials.insert(tx, draft, owner))
  const material = await custody.materials.fetch(id)
  return (await custody.operations.hmacs.mac(material, hashOf('sha2-256'), context)).toString('hex')
}
const hmac = (key: Buffer, message: Buffer): Buffer => createHmac('sha256', key).update(message).digest()

test.each([
  ['aes128-gcm96', 16],
  ['aes256-gcm96', 32],
])(
  'of %s by HKDF is HMAC-SHA-256 of the root under a key of zeros (RFC 5869 section 2.2)',
  async (algorithm, bytes) => {
    const { hsm, place } = cluster
    const keks = new Keks(hsm, place.database, false)
    const root = randomBytes(bytes)
    const draft = await extract({ hsm, keks }, await rootOf(algorithm, root), 'hkdf_sha256')
    expect(await macOf(draft)).toBe(hmac(hmac(Buffer.alloc(32), root), context).toString('hex'))
    expect(draft.fields).toMatchObject({ part: 'prk', algorithm: 'hmac', exportable: false, everPlaintext: true })
  },
)

test('of aes256-gcm96 by the counter KDF is the root itself', async () => {
  const { hsm, place } = cluster
  const keks = new Keks(hsm, place.database, false)
  const root = randomBytes(32)
  const draft = await extract({ hsm, keks }, await rootOf('aes256-gcm96', root), 'hmac-sha256-counter')
  expect(await macOf(draft)).toBe(hmac(root, context).toString('hex'))
})
