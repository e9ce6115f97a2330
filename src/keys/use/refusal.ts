import { badRequest } from '../../errors.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { MaybePromise } from '../../route.ts'

/**
 * Runs work whose input was checked before: the token then refuses only what it cannot do.
 * @throws ApiError 400 with the mechanism's name
 */
export function nameRefusal<T>(mechanism: string, work: () => MaybePromise<T>): MaybePromise<T> {
  const named = (error: unknown): never => {
    throw error instanceof HsmRefusal ? badRequest(`the HSM refuses ${mechanism}`, { cause: error }) : error
  }
  try {
    const result = work()
    return result instanceof Promise ? result.catch(named) : result
  } catch (error) {
    return named(error)
  }
}
