import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { asn1, write } from '../../crypto/der.ts'
import { answered, asking } from '../attribute.ts'
import { CKK, CKM } from '../constants.ts'
import { answer, type Bench, firstOf } from './bench.ts'
import { type FamilyProbe, makePair, message, type Pair, throughWrap } from './pairs.ts'

const curves = [
  { name: 'p224', oid: '06052b81040021', hash: 'sha224', bytes: 28 },
  { name: 'p256', oid: '06082a8648ce3d030107', hash: 'sha256', bytes: 32 },
  { name: 'p384', oid: '06052b81040022', hash: 'sha384', bytes: 48 },
  { name: 'p521', oid: '06052b81040023', hash: 'sha512', bytes: 66 },
] as const
type Curve = (typeof curves)[number]

const ecPublicKey = Buffer.from('06072a8648ce3d0201', 'hex')
const ed25519 = Buffer.from('06032b6570', 'hex')

async function readPoint(bench: Bench, open: Buffer): Promise<Buffer> {
  const { ecPoint } = answered(['ecPoint'], await bench.run('attributes', open, asking(['ecPoint'])))
  return ecPoint ?? Buffer.alloc(0)
}

/** Whether a key's ECDSA signature verifies under the public point. */
async function signsEcdsa(bench: Bench, { oid, hash, bytes }: Curve, point: Buffer, key: Buffer): Promise<boolean> {
  const digest = createHash(hash).update(message).digest()
  const signature = await bench.run('sign', key, { type: CKM.ECDSA }, digest, 2 * bytes)
  const identifier = write(asn1.sequence, ecPublicKey, Buffer.from(oid, 'hex'))
  const spki = write(asn1.sequence, identifier, write(asn1.bitString, Buffer.alloc(1), point))
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  return verify(hash, message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
}

/** ECDSA on one curve, and wrapping of its keys; settles whether unwrapping needs the point (NSS). */
const probeCurve =
  (curve: Curve): FamilyProbe =>
  async (bench, kwp) => {
    const kind = { keyType: CKK.EC, ecParameters: Buffer.from(curve.oid, 'hex') }
    const made = await answer(async () => {
      const pair = await makePair(bench, CKM.EC_KEY_PAIR_GEN, kind, {
        class: 'private',
        keyType: CKK.EC,
        usages: ['sign'],
      })
      return { pair, point: await readPoint(bench, pair.open) }
    })
    if (made === undefined) return []
    const { pair, point } = made
    if (!(await answer(() => signsEcdsa(bench, curve, point, pair.hidden)))) return []
    const before = bench.dialect
    const way = await firstOf([false, true], async (pointOnUnwrap) => {
      bench.dialect = { ...before, pointOnUnwrap }
      const withPoint: Pair = { ...pair, back: { ...pair.back, ecPoint: point } }
      return signsEcdsa(bench, curve, point, await throughWrap(bench, kwp, withPoint))
    })
    if (way === undefined) bench.dialect = before
    return way === undefined ? [`ecdsa-${curve.name}`] : [`ecdsa-${curve.name}`, `wrap-${curve.name}`]
  }

const probeEd25519: FamilyProbe = async (bench, kwp) => {
  const edwards = { keyType: CKK.EC_EDWARDS, ecParameters: ed25519 }
  const back = { class: 'private', keyType: CKK.EC_EDWARDS, usages: ['sign'] } as const
  const signs = async (key: Buffer, x: Buffer): Promise<boolean> => {
    const signature = await bench.run('sign', key, { type: CKM.EDDSA }, message, 64)
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') }
    return verify(null, message, createPublicKey({ format: 'jwk', key: jwk }), signature)
  }
  const made = await answer(async () => {
    const pair = await makePair(bench, CKM.EC_EDWARDS_KEY_PAIR_GEN, edwards, back)
    return { pair, point: await readPoint(bench, pair.open) }
  })
  const generated = made !== undefined && (await answer(() => signs(made.pair.hidden, made.point))) === true
  const wrapped = generated && (await answer(async () => signs(await throughWrap(bench, kwp, made.pair), made.point)))
  const created = await answer(async () => {
    const known = generateKeyPairSync('ed25519').privateKey
    const { d = '' } = known.export({ format: 'jwk' })
    const key = await bench.create({ ...back, ecParameters: ed25519, value: Buffer.from(d, 'base64url') })
    const signature = await bench.run('sign', key, { type: CKM.EDDSA }, message, 64)
    return sign(null, message, createPrivateKey(known.export({ format: 'pem', type: 'pkcs8' }))).equals(signature)
  })
  return [
    ...(generated ? (['eddsa'] as const) : []),
    ...(wrapped ? (['wrap-ed25519'] as const) : []),
    ...(created ? (['create-ed25519'] as const) : []),
  ]
}

export const curveProbes: readonly FamilyProbe[] = [...curves.map(probeCurve), probeEd25519]
