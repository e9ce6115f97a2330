import {
  constants,
  createHash,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  publicEncrypt,
  randomBytes,
  verify,
} from 'node:crypto'
import { answered, asking } from '../attribute.ts'
import type { Ability } from '../capabilities.ts'
import { CKG, CKK, CKM } from '../constants.ts'
import { answer, type Bench } from './bench.ts'
import { type FamilyProbe, makePair, message, throughWrap } from './pairs.ts'

const bytes = 256
/** DigestInfo of SHA-256 up to the digest (RFC 8017 section 9.2, note 1). */
const digestInfo = Buffer.from('3031300d060960864801650304020105000420', 'hex')
const digest = createHash('sha256').update(message).digest()

async function publicKey(bench: Bench, open: Buffer): Promise<KeyObject> {
  const names = ['modulus', 'publicExponent'] as const
  const { modulus, publicExponent } = answered(names, await bench.run('attributes', open, asking(names)))
  const jwk = { kty: 'RSA', n: modulus?.toString('base64url'), e: publicExponent?.toString('base64url') }
  return createPublicKey({ format: 'jwk', key: jwk as JsonWebKey })
}

type Probe = (bench: Bench, key: Buffer, open: KeyObject) => Promise<boolean>

const signsPkcs1: Probe = async (bench, key, open) => {
  const input = Buffer.concat([digestInfo, digest])
  return verify('sha256', message, open, await bench.run('sign', key, { type: CKM.RSA_PKCS }, input, bytes))
}

const signsPss: Probe = async (bench, key, open) => {
  const pss = { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256, saltLength: 32 }
  const signature = await bench.run('sign', key, { type: CKM.RSA_PKCS_PSS, pss }, digest, bytes)
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  return verify('sha256', message, { key: open, ...padding }, signature)
}

const decryptsRaw: Probe = async (bench, key, open) => {
  const plaintext = Buffer.concat([Buffer.alloc(1), randomBytes(bytes - 1)])
  const ciphertext = publicEncrypt({ key: open, padding: constants.RSA_NO_PADDING }, plaintext)
  return plaintext.equals(await bench.run('decrypt', key, { type: CKM.RSA_X_509 }, ciphertext))
}

const decryptsOaep: Probe = async (bench, key, open) => {
  const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
  const ciphertext = publicEncrypt({ key: open, ...padding }, message)
  const oaep = { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256 }
  return message.equals(await bench.run('decrypt', key, { type: CKM.RSA_PKCS_OAEP, oaep }, ciphertext))
}

const probes: readonly (readonly [Ability, Probe])[] = [
  ['rsa-pkcs1', signsPkcs1],
  ['rsa-pss', signsPss],
  ['rsa-raw', decryptsRaw],
  ['oaep-sha256', decryptsOaep],
]

/** RSA-2048: one key, generated, used, wrapped and used again. */
export const probeRsa: FamilyProbe = async (bench, kwp) => {
  const kind = { keyType: CKK.RSA, modulusBits: bytes * 8, publicExponent: Buffer.from([1, 0, 1]) }
  const made = await answer(async () => {
    const back = { class: 'private', keyType: CKK.RSA, usages: ['sign', 'decrypt'] } as const
    const pair = await makePair(bench, CKM.RSA_PKCS_KEY_PAIR_GEN, kind, back)
    return { pair, open: await publicKey(bench, pair.open) }
  })
  if (made === undefined) return []
  const proven: Ability[] = []
  for (const [ability, probe] of probes) {
    if (await answer(() => probe(bench, made.pair.hidden, made.open))) proven.push(ability)
  }
  const back = await answer(async () => signsPkcs1(bench, await throughWrap(bench, kwp, made.pair), made.open))
  return back ? [...proven, 'wrap-rsa'] : proven
}
