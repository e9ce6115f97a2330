import { createHash, timingSafeEqual } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { wrapKey } from '../../crypto/keywrap.ts'
import { secretBuffer } from '../../crypto/wiping.ts'

/** One custodian's component of a KEK. */
export interface Component {
  readonly bytes: Buffer
  /** 8 bytes, computed when the component was made: a mistyped component is found before anything is made. */
  readonly checkValue: Buffer
}

export const kekBytes = 32
const checkValueBytes = 8

/** The first 8 bytes of SHA-256 over KWP(KEK, 32 zero bytes): a key that may only wrap can still compute it. */
export const checkValueOf = (wrappedZeros: Uint8Array): Buffer =>
  createHash('sha256').update(wrappedZeros).digest().subarray(0, checkValueBytes)

/** The same value computed on the host (AES-KWP, RFC 5649), for a custodian's component, which is not a key yet. */
export const componentCheckValue = (component: Uint8Array): Buffer =>
  checkValueOf(wrapKey(component, Buffer.alloc(kekBytes)))

/** @param text `<64 hex digits> <16 hex digits of check value>`; blanks and `:` between digits are ignored */
export function parseComponent(text: string): Component {
  const digits = text.replace(/[\s:]/g, '')
  if (!/^[0-9a-f]{80}$/i.test(digits)) {
    throw new Error('a component is 64 hexadecimal digits followed by the 16 digits of its check value')
  }
  const bytes = Buffer.from(digits, 'hex')
  return { bytes: bytes.subarray(0, kekBytes), checkValue: bytes.subarray(kekBytes) }
}

/** The most that `choose` can search: it tries every choice of two or more, which takes two minutes for so many. */
export const mostComponents = 20
/** Choices that are tried in one turn of the event loop, within which no lease is renewed. */
const choicesInTurn = 256

/**
 * The KEK's value: the XOR of all components. The caller wipes it.
 * @throws Error naming the first component (counted from 1) that does not match its check value, or a pair that is
 * equal
 */
export function combine(components: readonly Component[]): Buffer {
  if (components.length < 2) throw new Error('a KEK needs the components of two custodians or more')
  if (components.length > mostComponents) {
    throw new Error(`more than ${mostComponents} components of one KEK were given`)
  }
  const value = secretBuffer(kekBytes)
  for (const [index, { bytes, checkValue }] of components.entries()) {
    const good = bytes.length === kekBytes && checkValue.length === checkValueBytes
    if (!good || !timingSafeEqual(componentCheckValue(bytes), checkValue)) {
      throw new Error(`component ${index + 1} does not match its check value`)
    }
    if (components.slice(0, index).some((other) => other.bytes.equals(bytes))) {
      throw new Error(`component ${index + 1} was already given: equal components cancel out`)
    }
    for (const [at, byte] of bytes.entries()) value[at] = (value[at] ?? 0) ^ byte
  }
  return value
}

/** The check value of the KEK that the components make. @throws Error as `combine` */
export function combinedCheckValue(components: readonly Component[]): Buffer {
  const value = combine(components)
  try {
    return componentCheckValue(value)
  } finally {
    value.fill(0)
  }
}

/**
 * The components that make the KEK of a check value: custodians may bring those of several ceremonies.
 * @returns undefined when no choice of two or more makes it
 * @throws Error for components that cannot be combined, or too many
 */
export const choose = async (
  components: readonly Component[],
  checkValue: Buffer,
): Promise<readonly Component[] | undefined> => (await chooseAny(components, [checkValue]))?.components

/** As `choose`, for the KEK of one of several check values. @returns also the check value that was met */
export async function chooseAny(
  components: readonly Component[],
  checkValues: readonly Buffer[],
): Promise<{ readonly components: readonly Component[]; readonly checkValue: Buffer } | undefined> {
  const value = combine(components)
  const met = (): Buffer | undefined => {
    const checkValue = componentCheckValue(value)
    return checkValues.find((one) => one.equals(checkValue))
  }
  try {
    const whole = met()
    if (whole !== undefined) return { components, checkValue: whole }
    value.fill(0)
    // In the order of a Gray code each choice differs from the one before in one component.
    for (let step = 1, chosen = 0; step < 2 ** components.length; step++) {
      if (step % choicesInTurn === 0) await turn()
      const changed = 31 - Math.clz32(step & -step)
      chosen ^= 1 << changed
      for (const [at, byte] of components[changed]?.bytes.entries() ?? []) value[at] = (value[at] ?? 0) ^ byte
      const isAlone = (chosen & (chosen - 1)) === 0
      const checkValue = isAlone ? undefined : met()
      if (checkValue !== undefined)
        return { components: components.filter((_, index) => chosen & (1 << index)), checkValue }
    }
    return undefined
  } finally {
    value.fill(0)
  }
}
