/**
 * A reader of an extension's value that remembers the latest one: successive certificates of an authority mostly share
 * it, byte for byte. @param read a pure function
 */
export function remembering<T>(read: (value: Buffer) => T): (value: Buffer) => T {
  let latest: { readonly value: Buffer; readonly result: T } | undefined
  return (value) => {
    if (latest?.value.equals(value)) return latest.result
    // A copy: the value is a view of a certificate, and so may be parts of the result.
    const copy = Buffer.from(value)
    const result = read(copy)
    latest = { value: copy, result }
    return result
  }
}
