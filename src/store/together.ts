import { LeaseLost } from './faults.ts'

/** Failures one after the other at which it is not the rows: the database or the token is away. */
const failuresInARow = 3

/**
 * Does work for several rows at once; when that fails, for each of them alone, so that none holds up the others.
 * @param failed called for each that fails alone too
 * @throws LeaseLost, and the error when one after the other fails
 */
export async function together<R>(
  ids: readonly string[],
  work: (ids: readonly string[]) => Promise<readonly R[]>,
  failed: (id: string, error: unknown) => void,
): Promise<R[]> {
  if (ids.length > 1) {
    try {
      return [...(await work(ids))]
    } catch (error) {
      if (error instanceof LeaseLost) throw error
    }
  }
  const done: R[] = []
  let failures = 0
  for (const id of ids) {
    try {
      done.push(...(await work([id])))
      failures = 0
    } catch (error) {
      if (error instanceof LeaseLost || ++failures === failuresInARow) throw error
      failed(id, error)
    }
  }
  return done
}
