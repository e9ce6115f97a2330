import {
  createDecipheriv,
  createHmac,
  generateKeyPairSync,
  hash,
  type KeyObject,
  randomBytes,
  verify,
} from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { unwrapKey, wrapKey } from '../../src/crypto/keywrap.ts'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { KeyTemplate } from '../../src/hsm/template.ts'
import { combine, componentCheckValue } from '../../src/keys/kek/components.ts'
import { makeKek, planKek } from '../../src/keys/kek/kek.ts'
import { Kek } from '../../src/keys/kek/keks.ts'
import { kekPurposes } from '../../src/keys/tables.ts'
import { createToken } from '../support/token.ts'
import { component } from './custodians.ts'
import { openHsm } from './support.ts'

let hsm: Hsm

beforeAll(async () => {
  hsm = await openHsm(await createToken('components'))
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

// With any module: a token of another maker must be able to take over from one that died.
it.each(kekPurposes)(
  'components make the %s KEK in a token, and it opens what another token wrapped',
  async (purpose) => {
    const components = [component(3), component(5)]
    const value = combine(components)
    const made = await makeKek(hsm, planKek('0199e7a4-0000-7000-8000-000000000001', purpose), {
      components,
      strict: false,
    })
    expect(made.checkValue).toEqual(componentCheckValue(value))

    const secret = randomBytes(32)
    const kek = new Kek(hsm, made, false)
    const key = await kek.unwrap(wrapKey(value, secret), { class: 'secret', keyType: CKK.AES, usages: ['encrypt'] })
    const iv = randomBytes(12)
    const sealed = await hsm.encrypt(key, { type: CKM.AES_GCM, gcm: { iv, tagBits: 128 } }, Buffer.from('kept'))
    const host = createDecipheriv('aes-256-gcm', secret, iv).setAuthTag(sealed.subarray(-16))
    expect(Buffer.concat([host.update(sealed.subarray(0, -16)), host.final()]).toString()).toBe('kept')
    const template = { class: 'secret', keyType: CKK.AES, valueLength: 32, extractable: true, usages: [] } as const
    const blob = await kek.wrap(await hsm.generateKey(CKM.AES_KEY_GEN, template))
    expect(unwrapKey(value, blob)).toHaveLength(32)
  },
)

const pkcs8 = (key: KeyObject): Buffer => key.export({ type: 'pkcs8', format: 'der' })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const shared = randomBytes(32)
const { x = '', y = '' } = ec.publicKey.export({ format: 'jwk' })
const message = Buffer.from('kept')

const others: readonly {
  readonly kind: string
  readonly value: Buffer
  readonly template: Omit<KeyTemplate, 'usages'>
  readonly mechanism: number
  readonly data: Buffer
  readonly length: number
  readonly proves: (signature: Buffer) => boolean
}[] = [
  {
    kind: 'an HMAC secret',
    value: shared,
    template: { class: 'secret', keyType: CKK.GENERIC_SECRET },
    mechanism: CKM.SHA256_HMAC,
    data: message,
    length: 32,
    proves: (mac) => mac.equals(createHmac('sha256', shared).update(message).digest()),
  },
  {
    kind: 'an EC key',
    value: pkcs8(ec.privateKey),
    template: {
      class: 'private',
      keyType: CKK.EC,
      ecPoint: Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]),
    },
    mechanism: CKM.ECDSA,
    data: hash('sha256', message, 'buffer'),
    length: 64,
    proves: (signature) => verify('sha256', message, { key: ec.publicKey, dsaEncoding: 'ieee-p1363' }, signature),
  },
  {
    kind: 'an RSA key',
    value: pkcs8(rsa.privateKey),
    template: { class: 'private', keyType: CKK.RSA },
    mechanism: CKM.RSA_PKCS,
    // DigestInfo of SHA-256 (RFC 8017 section 9.2).
    data: Buffer.concat([
      Buffer.from('3031300d060960864801650304020105000420', 'hex'),
      hash('sha256', message, 'buffer'),
    ]),
    length: 256,
    proves: (signature) => verify('sha256', message, rsa.publicKey, signature),
  },
]

it.each(others)('$kind of another token signs under a KEK made from components', async (key) => {
  const components = [component(2), component(7)]
  const planned = planKek('0199e7a4-0000-7000-8000-000000000002', 'use')
  const kek = new Kek(hsm, await makeKek(hsm, planned, { components, strict: false }), false)
  const blob = wrapKey(combine(components), key.value)
  const handle = await kek.unwrap(blob, { ...key.template, usages: ['sign'] })
  const signature = await hsm.sign(handle, { type: key.mechanism }, key.data, key.length)
  expect(key.proves(Buffer.from(signature))).toBe(true)
})
