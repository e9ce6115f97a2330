import { secretBuffer } from '../../crypto/wiping.ts'

/**
 * Values on their way to another thread and back. Every byte array is copied into memory of its own and moved: a view
 * would take its whole pool along, and two threads must not write to the same memory.
 */
export interface Parcel {
  readonly value: unknown
  readonly moved: ArrayBuffer[]
}

/** Copies a value made of plain objects, arrays, byte arrays and primitives. */
export function pack(value: unknown): Parcel {
  const moved: ArrayBuffer[] = []
  return { value: copy(value, moved), moved }
}

function copy(value: unknown, moved: ArrayBuffer[]): unknown {
  if (value instanceof Uint8Array) {
    const own = secretBuffer(value.length)
    own.set(value)
    moved.push(own.buffer)
    return own
  }
  return branch(value, (inner) => copy(inner, moved))
}

/** Makes Buffers of the byte arrays in what arrived. */
export function unpack(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return branch(value, unpack)
}

/** Wipes every byte array in a value that was copied and is not needed any more. */
export function wipe(value: unknown): void {
  if (value instanceof Uint8Array) value.fill(0)
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) wipe(inner)
}

function branch(value: unknown, each: (inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(each)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, each(inner)]))
}
