import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Makes the files of this directory from Wycheproof's (README.md says where they come from): `node select.ts
 * <testvectors_v1>`. A few tests stay of every set of flags and result, in groups that the API can take.
 */
const [directory = ''] = process.argv.slice(2)

interface Test {
  readonly tcId: number
  readonly flags: readonly string[]
  readonly result: string
}
interface Group {
  readonly tests: readonly Test[]
  readonly [field: string]: unknown
}
type Wanted = readonly (readonly [file: string, perCase: number])[]

/** Fields of groups and tests that the tests read. */
const kept = [
  ...['type', 'keySize', 'ivSize', 'tagSize', 'sha', 'sLen', 'publicKeyPem', 'privateKeyPkcs8'],
  ...['tcId', 'comment', 'flags', 'result', 'key', 'iv', 'aad', 'msg', 'ct', 'tag', 'sig', 'label'],
]
const pick = (source: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(source).filter(([name]) => kept.includes(name)))

/** Whether the API can be asked for a group at all. */
function fits(group: Group): boolean {
  const { type, keySize, ivSize, tagSize, sha, mgfSha, sLen, publicKey } = group
  if (type === 'AeadTest') return ivSize === 96 && tagSize === 128 && (keySize === 128 || keySize === 256)
  // Keys of 16 to 512 bytes, by the specification.
  if (type === 'MacTest') return Number(keySize) >= 128
  if (type === 'RsassaPssVerify') return mgfSha === sha && sLen !== 0
  if (type === 'RsassaPkcs1Verify') return (publicKey as { publicExponent: string }).publicExponent === '010001'
  return true
}

function select(wanted: Wanted): unknown[] {
  return wanted.flatMap(([file, perCase]) => {
    const path = join(directory, `${file}_test.json`)
    const { algorithm, testGroups } = JSON.parse(readFileSync(path, 'utf8')) as {
      algorithm: string
      testGroups: Group[]
    }
    const seen = new Map<string, number>()
    // HMACs: each key length by itself; the full-length tags alone.
    const full = Math.max(...testGroups.map(({ tagSize }) => Number(tagSize) || 0))
    return testGroups
      .filter((group) => fits(group) && (group.type !== 'MacTest' || group.tagSize === full))
      .map((group) => {
        const size = group.type === 'MacTest' || group.type === 'AeadTest' ? group.keySize : ''
        const tests = group.tests.filter(({ flags, result }) => {
          const name = `${size} ${flags.join()} ${result}`
          const count = (seen.get(name) ?? 0) + 1
          seen.set(name, count)
          return count <= perCase
        })
        return { file, algorithm, ...pick(group), tests: tests.map((test) => pick({ ...test })) }
      })
      .filter(({ tests }) => tests.length > 0)
  })
}

const files: Readonly<Record<string, Wanted>> = {
  aead: [
    ['aes_gcm', 5],
    ['chacha20_poly1305', 5],
  ],
  mac: [
    ...['sha1', 'sha224', 'sha256', 'sha384', 'sha512'].map((hash) => [`hmac_${hash}`, 1] as const),
    ...['sha3_224', 'sha3_256', 'sha3_384', 'sha3_512'].map((hash) => [`hmac_${hash}`, 1] as const),
  ],
  ecdsa: [
    ['ecdsa_secp256r1_sha256', 3],
    ['ecdsa_secp256r1_sha256_p1363', 1],
    ['ecdsa_secp256r1_sha3_256', 1],
    ['ecdsa_secp384r1_sha384', 1],
    ['ecdsa_secp384r1_sha384_p1363', 1],
    ['ecdsa_secp521r1_sha512', 1],
    ['ecdsa_secp521r1_sha512_p1363', 1],
  ],
  ed25519: [['ed25519', 4]],
  rsa: [
    ['rsa_pss_2048_sha1_mgf1_20', 1],
    ['rsa_pss_2048_sha256_mgf1_32', 3],
    ['rsa_pss_2048_sha384_mgf1_48', 2],
    ['rsa_pss_3072_sha256_mgf1_32', 1],
    ['rsa_pss_4096_sha512_mgf1_64', 1],
    ['rsa_signature_2048_sha256', 3],
    ['rsa_signature_2048_sha512', 1],
    ['rsa_signature_2048_sha3_256', 1],
    ['rsa_signature_3072_sha384', 1],
    ['rsa_signature_4096_sha512', 1],
    ['rsa_oaep_2048_sha256_mgf1sha256', 10],
    ['rsa_oaep_3072_sha256_mgf1sha256', 1],
    ['rsa_oaep_4096_sha256_mgf1sha256', 1],
  ],
}

for (const [name, wanted] of Object.entries(files)) {
  const groups = select(wanted)
  writeFileSync(join(import.meta.dirname, `${name}.json`), `${JSON.stringify(groups, undefined, 2)}\n`)
}
