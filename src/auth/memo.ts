/**
 * A bounded cache of pure results in two generations; the older is dropped whole when the younger is full. A hit costs
 * one Map look-up, and a caller with ever new keys cannot evict those in frequent use.
 */
export function memo<V>(limit: number): { get(key: string): V | undefined; set(key: string, value: V): void } {
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  const set = (key: string, value: V): void => {
    if (young.size >= limit) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }
  return {
    set,
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },
  }
}
