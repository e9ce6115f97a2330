/** A function that makes its value when it is first asked, and keeps it. One that throws is asked again. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
