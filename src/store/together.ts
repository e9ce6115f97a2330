import { LeaseLost } from './faults.ts'

/** After this many failures in a row the rows are not the cause: the database or the token is out of reach. */
const failuresInARow = 3

/**
 * Works on several rows at once; if that fails, on each alone, so that none holds up the others.
 * @param failed called for each row that fails alone too
 * @throws LeaseLost, and the error after too many failures in a row
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
