import { generateKeyPairSync, hash, verify } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import type { ManagedAdministration } from '../../src/keys/managed/administration.ts'
import type { ManagedHsms } from '../../src/keys/managed/hsms.ts'
import type { ManagedKeys, Use } from '../../src/keys/managed/managedkeys.ts'
import { Material } from '../../src/keys/material.ts'
import { encodePublicKey, fingerprintOf } from '../../src/keys/publickey.ts'
import { makeEc, makeRsa } from '../managed/tool.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { type Cluster, clock, log, manage, useCluster } from './support.ts'

/** Managed keys as signers of certificates. */

let managed: ManagedKeys
let administration: ManagedAdministration
let hsms: ManagedHsms
let sibling: TestToken
useCluster(
  'certifier',
  async ({ custody, place, hsm }: Cluster) => {
    const { library } = hsm.credentials
    const libraries = [{ name: 'same', library, environment: {}, threads: 2, callDeadlineMilliseconds: 20_000 }]
    ;({ managed, administration, hsms } = manage(custody, place.database, hsm, { libraries, log, clock }))
  },
  {},
  async () => {
    sibling = await createToken('sibling')
    await makeRsa(sibling, 'rsa', '01')
    await makeEc(sibling, 'ec', '02')
  },
)
afterAll(() => hsms[Symbol.asyncDispose]())

const message = Buffer.from('to be signed')
async function use(name: string, mechanism: string, label: string): Promise<Use> {
  const { label: token_label, pin } = sibling
  const place = { library: 'same', token_label, pin, key_label: label }
  await administration.write(name, { ...place, mechanism, any_mount: true }, 'me')
  const { id, draft } = await managed.prepare('', { name }, 'me')
  const pinned = new Material({
    ...{ namespace: '', mount: '', rev: 1, epoch: 0, owner: '', version: 1, ckaId: null, kek: null, blob: null },
    ...{ mechanism: null, publicKey: null, fingerprint: null, id: '', ...draft.fields },
  } as Material['row'])
  return { mount: '', managedKey: id, pinned }
}

describe('a managed key signs certificates', () => {
  test.each([
    ['0x1041', 'ec', ['ECDSAWithSHA256', 'ECDSAWithSHA384', 'ECDSAWithSHA512']],
    ['0x0001', 'rsa', ['SHA256WithRSA', 'SHA384WithRSA', 'SHA512WithRSA']],
    ['0x000d', 'rsa', ['SHA256WithRSAPSS', 'SHA384WithRSAPSS', 'SHA512WithRSAPSS']],
  ])('by what its mechanism makes: %s', async (mechanism, label, names) => {
    const signer = await managed.certifier(await use(`k${mechanism}`, mechanism, label))
    expect(signer.algorithms).toEqual(names)
    for (const name of signer.algorithms) {
      const { signature } = await signer.sign(name, message)
      const bits = /SHA(\d+)/.exec(name)?.[1]
      const pss = name.endsWith('PSS') ? { padding: 6, saltLength: Number(bits) / 8 } : {}
      expect(verify(`sha${bits}`, message, { key: signer.publicKey, ...pss }, signature), name).toBe(true)
      const ofDigest = await signer.signDigest(name, hash(`sha${bits}`, message, 'buffer'))
      expect(verify(`sha${bits}`, message, { key: signer.publicKey, ...pss }, ofDigest.signature), name).toBe(true)
    }
    expect(() => signer.sign('Ed25519', message)).toThrow('does not sign by Ed25519')
  })

  test('once for any number of uses, each with a row of its own', async () => {
    const { managedKey, pinned } = await use('several', '0x1041', 'ec')
    const again = await managed.prepare('', { id: managedKey }, 'me')
    expect(again.draft.fields.id).not.toBe(pinned.id)
    expect(again.draft.fields.fingerprint).toEqual(pinned.row.fingerprint)
  })

  test('and not when it is another by now', async () => {
    const other = await use('other', '0x1041', 'ec')
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const spki = encodePublicKey(publicKey)
    const pinned = new Material({ ...other.pinned.row, publicKey: spki, fingerprint: fingerprintOf(spki) })
    const signer = await managed.certifier({ ...other, pinned })
    await expect((async () => signer.sign('ECDSAWithSHA256', message))()).rejects.toThrow(
      'no longer names the key of this version',
    )
  })

  test('and not by another padding than it was made for, whatever mechanism it has by now', async () => {
    const { label: token_label, pin } = sibling
    const padded = await use('padded', '0x0001', 'rsa')
    const signer = await managed.certifier(padded)
    await signer.sign('SHA256WithRSA', message)
    const place = { library: 'same', token_label, pin, key_label: 'rsa', any_mount: true }
    await administration.write('padded', { ...place, mechanism: '0x000d' }, 'me')
    await expect((async () => signer.sign('SHA256WithRSA', message))()).rejects.toMatchObject({
      status: 400,
      message: 'managed key "padded" signs by CKM_RSA_PKCS_PSS: signature_algorithm must be pss',
    })
  })

  test('and not one that may not sign', async () => {
    const { label: token_label, pin } = sibling
    const place = { library: 'same', token_label, pin, key_label: 'ec', mechanism: '0x1041' }
    const { managedKey, pinned } = await use('limited', '0x1041', 'ec')
    await administration.write('limited', { ...place, usages: ['verify'] }, 'me')
    await expect((async () => managed.certifier({ mount: '', managedKey, pinned }))()).rejects.toThrow('may not sign')
  })
})
