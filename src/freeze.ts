/** Freezes a value deeply, except for bytes, which cannot be frozen. @returns the same value */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}
