import { constants, createPublicKey, type KeyObject, randomBytes, verify } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { asn1, expect as element, readAll, readOne } from '../../src/crypto/der.ts'
import { digest } from '../../src/crypto/hashes.ts'
import { type SignatureName, signatureAlgorithms } from '../../src/crypto/signaturealgorithm.ts'
import { Material } from '../../src/keys/material.ts'
import { Certification, type CertificationSigner, FaultySignature } from '../../src/keys/use/certification.ts'
import { type Cluster, makeKey, useCluster } from './support.ts'

const lines: Record<string, unknown>[] = []
const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
let cluster: Cluster
useCluster(
  'certification',
  (begun) => {
    cluster = begun
  },
  { log },
)

const make = (type: string): Promise<Material> => makeKey(cluster.custody, cluster.place.database, type)
/** Another key of its type with a blob of the same length, by which live objects are told apart; those of RSA vary. */
async function makeAlike({ algorithm, row }: Material): Promise<Material> {
  for (;;) {
    const made = await make(algorithm.name)
    if (made.row.blob?.length === row.blob?.length) return made
  }
}

const signerOf = (material: Material): CertificationSigner => cluster.custody.operations.certification.of(material)
const message = randomBytes(300)

/** OpenSSL's verdict, by the name alone. */
function verifies(name: string, key: KeyObject, signature: Buffer): boolean {
  if (name === 'Ed25519') return verify(null, message, key, signature)
  const bits = /^(?:ECDSAWith)?SHA(\d+)/.exec(name)?.[1]
  if (!name.endsWith('PSS')) return verify(`sha${bits}`, message, key, signature)
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: Number(bits) / 8 }
  return verify(`sha${bits}`, message, { key, ...pss }, signature)
}

const rsa = ['SHA256WithRSA', 'SHA384WithRSA', 'SHA512WithRSA']
const pss = rsa.map((name) => `${name}PSS`)
const [p256, p384, p521] = [256, 384, 512].map((bits) => `ECDSAWithSHA${bits}`)

describe('a key signs certificates', () => {
  test.each([
    ['rsa-2048', [...rsa, ...pss]],
    ['ecdsa-p256', [p256, p384, p521]],
    ['ecdsa-p384', [p384, p256, p521]],
    ['ecdsa-p521', [p521, p256, p384]],
    ['ed25519', ['Ed25519']],
  ])('of %s by all that its type can, the usual first, and OpenSSL verifies each', async (type, names) => {
    const material = await make(type)
    const signer = signerOf(material)
    expect(signer.algorithms).toEqual(names)
    expect(signer.publicKey.equals(material.publicKey)).toBe(true)
    expect(createPublicKey({ key: signer.spki, format: 'der', type: 'spki' }).equals(signer.publicKey)).toBe(true)
    for (const name of signer.algorithms) {
      const { algorithm, signature } = await signer.sign(name, message)
      expect(algorithm).toEqual(signatureAlgorithms.get(name)?.identifier)
      expect(verifies(name, signer.publicKey, signature), name).toBe(true)
    }
  })

  test('by no algorithm of another type', async () => {
    const signer = signerOf(await make('ecdsa-p256'))
    expect(() => signer.sign('SHA256WithRSA', message)).toThrow(
      'a key of type ecdsa-p256 does not sign by SHA256WithRSA, only by ECDSAWithSHA256, ECDSAWithSHA384, ECDSAWithSHA512',
    )
    const secret = await make('aes256-gcm96')
    expect(() => signerOf(secret)).toThrow('key type aes256-gcm96 does not support signing')
  })
})

test('PSS parameters are those of RFC 4055: the hash, MGF1 by it, a salt as long, no trailer', () => {
  for (const [bits, oid] of [
    [256, '01'],
    [384, '02'],
    [512, '03'],
  ] as const) {
    const identifier = signatureAlgorithms.get(`SHA${bits}WithRSAPSS`)?.identifier ?? Buffer.alloc(0)
    const [name, parameters] = readAll(readOne(identifier, asn1.sequence))
    expect(element(name, asn1.oid).toString('hex')).toBe('2a864886f70d01010a')
    const [hash, mask, salt, ...more] = readAll(element(parameters, asn1.sequence))
    const sha = `300d06096086480165030402${oid}0500`
    expect(hash?.contents.toString('hex')).toBe(sha)
    expect(mask?.contents.toString('hex')).toBe(`301a06092a864886f70d010108${sha}`)
    expect(readOne(salt?.contents ?? Buffer.alloc(0), asn1.integer)).toEqual(Buffer.from([bits / 8]))
    expect(more).toEqual([])
  }
})

describe('a signature that does not verify is a fault of ours, is logged, and is not released:', () => {
  const expectFaulty = async (signing: () => unknown, { id }: Material, algorithm: SignatureName) => {
    lines.length = 0
    await expect((async () => signing())()).rejects.toBeInstanceOf(FaultySignature)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({ level: 50, material: id, algorithm })
  }

  test.each(['rsa-2048', 'ecdsa-p256', 'ed25519'])(
    'the token’s handle is one of another %s key; the next use has the right one',
    async (type) => {
      const mine = await make(type)
      const other = await makeAlike(mine)
      const { handles } = cluster.custody.objects
      // The other key, in place of this one's live object.
      await handles.use(new Material({ ...other.row, id: mine.id }), () => undefined)
      const signer = signerOf(mine)
      for (const name of signer.algorithms) {
        await handles.use(new Material({ ...other.row, id: mine.id }), () => undefined)
        await expectFaulty(() => signer.sign(name, message), mine, name)
        const { signature } = await signer.sign(name, message)
        expect(verifies(name, mine.publicKey, signature)).toBe(true)
        handles.drop(mine.id)
      }
    },
  )

  test('a token that flips one bit, or gives what is no signature', async () => {
    const { operations, objects } = cluster.custody
    const certification = new Certification({ signer: operations.signer, handles: objects.handles, log })
    for (const type of ['rsa-2048', 'ecdsa-p256', 'ed25519']) {
      const material = await make(type)
      const spoil = (change: (signature: Buffer) => Buffer) =>
        certification.over({
          material,
          sign: async (input, scheme) => change(await operations.signer.sign(material, input, scheme)),
        })
      const flipped = spoil((signature) => {
        signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1
        return signature
      })
      for (const wrong of [flipped, spoil((signature) => signature.subarray(1)), spoil(() => Buffer.alloc(0))]) {
        for (const name of wrong.algorithms) await expectFaulty(() => wrong.sign(name, message), material, name)
      }
    }
  })
})

test('it signs these bytes and no others', async () => {
  const signer = signerOf(await make('ecdsa-p256'))
  const { signature } = await signer.sign('ECDSAWithSHA256', message)
  expect(verify('sha256', Buffer.concat([message, Buffer.alloc(1)]), signer.publicKey, signature)).toBe(false)
})

describe('a digest is signed in place of the message that it is of', () => {
  test.each(['rsa-2048', 'ecdsa-p256', 'ecdsa-p521'])('by a key of type %s by each of its algorithms', async (type) => {
    const signer = signerOf(await make(type))
    for (const name of signer.algorithms) {
      const { hash } = signatureAlgorithms.get(name) ?? {}
      if (hash === undefined) throw new Error(`${name} has no hash`)
      const { algorithm, signature } = await signer.signDigest(name, digest(hash, message))
      expect(algorithm).toEqual(signatureAlgorithms.get(name)?.identifier)
      expect(verifies(name, signer.publicKey, signature), name).toBe(true)
      expect(() => signer.signDigest(name, Buffer.alloc(hash.bytes - 1))).toThrow(`not a digest by ${hash.name}`)
    }
  })

  test('but not for Ed25519, and by no algorithm of another type', async () => {
    const signer = signerOf(await make('ed25519'))
    expect(() => signer.signDigest('Ed25519', Buffer.alloc(64))).toThrow('Ed25519 signs messages whole, not digests')
    expect(() => signer.signDigest('ECDSAWithSHA256', Buffer.alloc(32))).toThrow('does not sign by ECDSAWithSHA256')
  })

  test('and verified before it is released', async () => {
    const material = await make('ecdsa-p256')
    const { operations, objects } = cluster.custody
    const certification = new Certification({ signer: operations.signer, handles: objects.handles, log })
    const wrong = certification.over({
      material,
      sign: (_, scheme) => operations.signer.sign(material, Buffer.alloc(32, 1), scheme),
    })
    const signing = async () => wrong.signDigest('ECDSAWithSHA256', Buffer.alloc(32, 2))
    await expect(signing()).rejects.toBeInstanceOf(FaultySignature)
  })
})
