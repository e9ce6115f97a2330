import { type AttributeName, answered, asking } from '../attribute.ts'
import type { Ability } from '../capabilities.ts'
import { CKK, CKM } from '../constants.ts'
import type { KeyTemplate } from '../template.ts'
import { answer, type Bench, firstOf } from './bench.ts'
import type { FamilyProbe } from './pairs.ts'

const numbers = [
  ...(['modulus', 'publicExponent', 'privateExponent', 'prime1', 'prime2'] as const),
  ...(['exponent1', 'exponent2', 'coefficient'] as const),
] as const

/** Whether a pair can be made whose private key shows all of these attributes. */
async function shows(
  bench: Bench,
  mechanism: number,
  { keyType, ...open }: Partial<KeyTemplate> & { readonly keyType: number },
  names: readonly AttributeName[],
): Promise<boolean> {
  const hidden = { class: 'private', keyType, usages: ['sign'], sensitive: false, extractable: true } as const
  const pair = await bench.generatePair(mechanism, { ...open, class: 'public', keyType, usages: [] }, hidden)
  const shown = answered(names, await bench.run('attributes', pair.hidden, asking(names)))
  const values = names.map((name) => shown[name])
  for (const value of values) if (Buffer.isBuffer(value)) value.fill(0)
  return values.every((value) => Buffer.isBuffer(value) && value.length > 0)
}

const p256 = Buffer.from('06082a8648ce3d030107', 'hex')
const ed25519 = Buffer.from('06032b6570', 'hex')
const publicExponent = Buffer.from([1, 0, 1])

const probes: readonly (readonly [Ability, (bench: Bench) => Promise<boolean>])[] = [
  ['read-ec', (bench) => shows(bench, CKM.EC_KEY_PAIR_GEN, { keyType: CKK.EC, ecParameters: p256 }, ['value'])],
  [
    'read-ed25519',
    (bench) => shows(bench, CKM.EC_EDWARDS_KEY_PAIR_GEN, { keyType: CKK.EC_EDWARDS, ecParameters: ed25519 }, ['value']),
  ],
  [
    'read-rsa',
    async (bench) => {
      // The small one is made quickly, but some tokens refuse it.
      const made = await firstOf([1024, 2048], (modulusBits) =>
        shows(bench, CKM.RSA_PKCS_KEY_PAIR_GEN, { keyType: CKK.RSA, modulusBits, publicExponent }, numbers),
      )
      return made !== undefined
    },
  ],
]

/** The families whose private keys the token shows if they were made to be read. */
export const probeReadable: FamilyProbe = async (bench) => {
  const proven: Ability[] = []
  for (const [ability, probe] of probes) if (await answer(() => probe(bench))) proven.push(ability)
  return proven
}
