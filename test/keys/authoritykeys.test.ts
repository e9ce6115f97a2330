import {
  constants,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  publicEncrypt,
  randomUUID,
  verify,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CKM } from '../../src/hsm/constants.ts'
import { HsmRefusal } from '../../src/hsm/faults.ts'
import type { Material } from '../../src/keys/material.ts'
import type { Draft } from '../../src/keys/materials/draft.ts'
import { encodePublicKey, fingerprintOf } from '../../src/keys/publickey.ts'
import { type Cluster, makeKey, useCluster } from './support.ts'

let cluster: Cluster
useCluster('authority', (begun) => {
  cluster = begun
})
const createdBy = 'me'
const keys = () => cluster.custody.authorityKeys

async function store(draft: Draft): Promise<Material> {
  const { materials } = cluster.custody
  const owner = { mount: '', key: randomUUID(), version: 1 }
  const row = await cluster.place.database.transaction((tx) => materials.insert(tx, draft, owner))
  return materials.fetch(row.id)
}
const message = Buffer.from('to be signed')
/** Signs by the usual algorithm after the live object was dropped, so that it is loaded from its row. */
async function expectSigns(material: Material): Promise<void> {
  cluster.custody.objects.handles.drop(material.id)
  const signer = cluster.custody.operations.certification.of(material)
  for (const name of signer.algorithms) expect((await signer.sign(name, message)).signature.length).toBeGreaterThan(0)
}

const made = ['rsa-2048', 'ecdsa-p224', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'] as const

describe('the key of an authority', () => {
  test.each(made)('of %s is made, lies under no KEK that lets it out, and signs', async (algorithm) => {
    const material = await store(await keys().prepare({ algorithm, createdBy }))
    const { part, exportable, everPlaintext, origin } = material.row
    const enveloped = algorithm === 'ed25519'
    expect({ part, exportable, everPlaintext, origin }).toEqual({
      ...{ part: 'authority', exportable: false, origin: 'generated' },
      everPlaintext: enveloped,
    })
    expect(await purposeOf(material)).toBe(enveloped ? 'open' : 'use')
    await expectSigns(material)
  })

  test.each(['prepare', 'token'] as const)('of RSA decrypts nothing in the token: %s', async (way) => {
    const residence = way === 'token' ? way : undefined
    const material = await store(await keys().prepare({ algorithm: 'rsa-2048', residence, createdBy }))
    const padding = { padding: constants.RSA_PKCS1_PADDING }
    const sealed = publicEncrypt({ key: material.publicKey, ...padding }, Buffer.from('secret'))
    const { hsm, custody } = cluster
    await custody.objects.handles.use(material, async (handle) => {
      expect(await hsm.attributes(handle, ['sign', 'decrypt', 'unwrap', 'sensitive', 'extractable'])).toEqual({
        ...{ sign: true, decrypt: false, unwrap: false, sensitive: true, extractable: false },
      })
      for (const type of [CKM.RSA_PKCS, CKM.RSA_X_509]) {
        await expect((async () => hsm.decrypt(handle, { type }, sealed))()).rejects.toBeInstanceOf(HsmRefusal)
      }
    })
    await expectSigns(material)
    // A Transit key decrypts, by the same calls.
    const general = await makeKey(custody, cluster.place.database, 'rsa-2048')
    const toGeneral = publicEncrypt({ key: general.publicKey, ...padding }, Buffer.from('secret'))
    const opened = await custody.objects.handles.use(general, (handle) =>
      hsm.decrypt(handle, { type: CKM.RSA_PKCS }, toGeneral),
    )
    expect(opened.toString()).toBe('secret')
  })

  test('is never made exportable', async () => {
    const { row } = await store(await keys().prepare({ algorithm: 'ecdsa-p256', createdBy }))
    await expect(cluster.custody.transfer.makeExportable.prepare([row])).rejects.toMatchObject({ status: 400 })
  })

  test('of another type, or of one that is only imported, is not made', async () => {
    for (const [algorithm, text] of [
      ['aes256-gcm96', 'unknown key type aes256-gcm96'],
      ['dsa', 'unknown key type dsa'],
      ['rsa-1024', 'rsa-1024 keys are imported and never made'],
      ['rsa-8192', 'rsa-8192 keys are imported and never made'],
      ['rsa-512', 'unknown key type rsa-512'],
      ['rsa-2047', 'unknown key type rsa-2047'],
    ] as const) {
      for (const make of [
        () => keys().prepare({ algorithm, createdBy }),
        () => keys().prepareExported({ algorithm, createdBy }),
      ]) {
        await expect((async () => make())()).rejects.toMatchObject({ status: 400, message: text })
      }
    }
  })
})

describe('an exported key', () => {
  test.each(made)('of %s is handed out once, was in clear, and never leaves again', async (algorithm) => {
    const { draft, pkcs8 } = await keys().prepareExported({ algorithm, createdBy })
    const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
    const material = await store(draft)
    expect(createPublicKey(key).equals(material.publicKey)).toBe(true)
    const { exportable, everPlaintext, origin, local, alwaysSensitive, neverExtractable } = material.row
    expect({ exportable, everPlaintext, origin, local, alwaysSensitive, neverExtractable }).toEqual({
      ...{ exportable: false, everPlaintext: true, origin: 'generated', local: true },
      ...{ alwaysSensitive: false, neverExtractable: false },
    })
    expect(await purposeOf(material)).toBe(algorithm === 'ed25519' ? 'open' : 'use')
    await expectSigns(material)
    await expect(cluster.custody.transfer.keyExport.open(material, () => undefined)).rejects.toThrow('never leaves')
  })

  test('under the export KEK was never wrapped: no row of it, and nothing of it stays in the token', async () => {
    const before = await cluster.hsm.find({ token: false })
    await keys().prepareExported({ algorithm: 'ecdsa-p256', createdBy })
    expect(await cluster.hsm.find({ token: false })).toHaveLength(before.length)
  })

  test('does not live in the HSM alone', async () => {
    const wanted = { algorithm: 'ecdsa-p256', residence: 'token', createdBy } as const
    await expect(keys().prepareExported(wanted)).rejects.toMatchObject({
      status: 400,
      message: 'a key that lives in the HSM alone cannot be handed out: residence is token',
    })
  })
})

describe('residence by choice', () => {
  test('token is for pairs that are neither exportable nor derived from', async () => {
    const { materials } = cluster.custody
    const common = { part: 'key', createdBy, residence: 'token', exportable: false } as const
    for (const [more, text] of [
      [{ algorithm: 'aes256-gcm96' }, 'only key pairs live in the HSM alone'],
      [
        { algorithm: 'ecdsa-p256', exportable: true },
        'what lives in the HSM alone is neither exported nor derived from',
      ],
      [{ algorithm: 'ed25519', derived: true }, 'what lives in the HSM alone is neither exported nor derived from'],
    ] as const) {
      await expect(materials.prepare({ ...common, ...more })).rejects.toMatchObject({ status: 400, message: text })
    }
  })
})

describe('an imported key', () => {
  const samples = {
    'rsa-1024': () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
    'rsa-1536': () => generateKeyPairSync('rsa', { modulusLength: 1536 }),
    'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
    // Its primes would take a busy machine longer than a test may.
    'rsa-8192': () => pairOf(readFileSync(join(import.meta.dirname, 'fixtures/rsa8192.pem'))),
    'ecdsa-p224': () => generateKeyPairSync('ec', { namedCurve: 'P-224' }),
    'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    'ecdsa-p384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    'ecdsa-p521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
    ed25519: () => generateKeyPairSync('ed25519'),
  } as const

  test.each(Object.entries(samples))(
    'of %s is recognised, shows its fingerprint before it is stored, and signs',
    async (type, make) => {
      const { privateKey, publicKey } = make()
      const draft = await keys().prepareImported(privateKey.export({ format: 'der', type: 'pkcs8' }), createdBy)
      expect(draft.fields).toMatchObject({
        algorithm: type,
        origin: 'imported',
        everPlaintext: true,
        exportable: false,
      })
      expect(draft.fields.fingerprint).toEqual(fingerprintOf(encodePublicKey(publicKey)))
      const material = await store(draft)
      expect(cluster.custody.operations.certification.of(material).weak).toBe(['rsa-1024', 'rsa-1536'].includes(type))
      await expectSigns(material)
    },
    60_000,
  )

  test('of RSA-1024 has no room for the salt of SHA-512', async () => {
    const draft = await keys().prepareImported(
      samples['rsa-1024']().privateKey.export({ format: 'der', type: 'pkcs8' }),
      createdBy,
    )
    const { algorithms } = cluster.custody.operations.certification.of(await store(draft))
    expect(algorithms).toEqual([
      'SHA256WithRSA',
      'SHA384WithRSA',
      'SHA512WithRSA',
      'SHA256WithRSAPSS',
      'SHA384WithRSAPSS',
    ])
  })

  const explicit = () => generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' })
  test.each([
    ['DSA', () => generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }), /its algorithm is unknown/],
    ['Ed448', () => generateKeyPairSync('ed448'), /its algorithm is unknown/],
    ['secp256k1', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }), /^unsupported curve/],
    ['brainpool', () => generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' }), /^unsupported curve/],
    ['an explicit curve', explicit, /it is no PKCS#8 PrivateKeyInfo of a key that is served/],
    ['RSA-768', () => generateKeyPairSync('rsa', { modulusLength: 768 }), /^unsupported bit length for RSA key: 768/],
    [
      'RSA-1030',
      () => generateKeyPairSync('rsa', { modulusLength: 1030 }),
      /^unsupported bit length for RSA key: 1030/,
    ],
  ] as const)('is none of %s', async (_, make, text) => {
    const pkcs8 = make().privateKey.export({ format: 'der', type: 'pkcs8' }) as Buffer
    await expect(keys().prepareImported(pkcs8, createdBy)).rejects.toMatchObject({ status: 400 })
    await expect(keys().prepareImported(pkcs8, createdBy)).rejects.toThrow(text)
  })

  test('that is cut short or spoiled anywhere is refused, and never a fault of ours', async () => {
    const whole = samples['ecdsa-p256']().privateKey.export({ format: 'der', type: 'pkcs8' })
    for (let length = 0; length < whole.length; length++) {
      await expect(keys().prepareImported(Buffer.from(whole.subarray(0, length)), createdBy)).rejects.toMatchObject({
        status: 400,
      })
    }
    for (let at = 0; at < whole.length; at++) {
      const spoiled = Buffer.from(whole)
      spoiled[at] = (spoiled[at] ?? 0) ^ 0x40
      const outcome = await keys()
        .prepareImported(spoiled, createdBy)
        .catch((error) => error)
      if (outcome instanceof Error) expect(outcome, `byte ${at}`).toMatchObject({ status: 400 })
    }
  })
})

test('P-224 and other sizes of RSA are types of certificates alone', async () => {
  const { materials } = cluster.custody
  for (const algorithm of ['ecdsa-p224', 'rsa-1024', 'rsa-8192']) {
    await expect(materials.prepare({ algorithm, part: 'key', exportable: false, createdBy })).rejects.toMatchObject({
      status: 400,
      message: `unknown key type ${algorithm}`,
    })
  }
  const { pkcs8, publicKey } = await cluster.custody.transients.make('ecdsa-p224')
  expect(createPublicKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })).equals(publicKey)).toBe(true)
  const material = await store(await keys().prepare({ algorithm: 'ecdsa-p224', createdBy }))
  const { signature } = await cluster.custody.operations.certification.of(material).sign('ECDSAWithSHA256', message)
  expect(verify('sha256', message, material.publicKey, signature)).toBe(true)
})

const pairOf = (pem: Buffer) => ({ privateKey: createPrivateKey(pem), publicKey: createPublicKey(pem) })

const purposeOf = (material: Material): Promise<string> =>
  cluster.custody.managed.blobs.under(material, (kek) => kek.row.purpose)
