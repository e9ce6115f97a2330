import type { Ability } from '../capabilities.ts'
import { CKM } from '../constants.ts'
import type { KeyTemplate } from '../template.ts'
import type { Bench } from './bench.ts'
import { aes } from './secrets.ts'

export const message = Buffer.from('strongroom self-test')

/** A generated pair; `back` is the template for unwrapping its private key: sensitive, not extractable. */
export interface Pair {
  readonly open: Buffer
  readonly hidden: Buffer
  readonly back: KeyTemplate
}

/** Generates a pair whose private key may be wrapped. `kind` has the key type and the public key's parameters. */
export async function makePair(bench: Bench, mechanism: number, kind: Partial<KeyTemplate>, back: KeyTemplate) {
  const open: KeyTemplate = { ...kind, class: 'public', usages: [] }
  const pair = await bench.generatePair(mechanism, open, { ...back, extractable: true })
  return { ...pair, back } satisfies Pair
}

/** Wraps a private key and brings it back. */
export async function throughWrap(bench: Bench, kwp: number, pair: Pair): Promise<Buffer> {
  const kek = await bench.generate(CKM.AES_KEY_GEN, aes(['wrap', 'unwrap'], { valueLength: 32 }))
  return bench.unwrap(kek, kwp, await bench.run('wrap', kek, kwp, pair.hidden), pair.back)
}

/** Finds the token's abilities with a family of keys. */
export type FamilyProbe = (bench: Bench, kwp: number) => Promise<Ability[]>
