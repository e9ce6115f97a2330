import { type Component, componentCheckValue } from '../../src/keys/kek/components.ts'
import { type KekPurpose, kekPurposes } from '../../src/keys/tables.ts'

/** A component of equal bytes. */
export const component = (byte: number): Component => {
  const bytes = Buffer.alloc(32, byte)
  return { bytes, checkValue: componentCheckValue(bytes) }
}

export const eachPurpose = <T>(value: (purpose: KekPurpose) => T): Record<KekPurpose, T> =>
  Object.fromEntries(kekPurposes.map((purpose) => [purpose, value(purpose)])) as Record<KekPurpose, T>

/** The components of two custodians for each KEK. */
export const custodians = eachPurpose((purpose) => [component(10 + kekPurposes.indexOf(purpose)), component(99)])
