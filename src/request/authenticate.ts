import type { Authenticator, Identity } from '../auth/authenticate.ts'
import { ApiError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { MaybePromise } from '../route.ts'

/** 403 for a missing or bad token, in the plain text that clients match on. */
export const notAuthenticated = (): ApiError => new ApiError(403, 'permission denied')

/**
 * The caller of a public route, if it sent a valid token. A failing look-up must not keep sys/health from answering:
 * the caller is then unknown.
 */
export function recogniseCaller(authenticator: Authenticator, credential: string): MaybePromise<Identity | undefined> {
  if (credential === '') return undefined
  const unknown = () => undefined
  try {
    const identity = authenticator.recognise(credential)
    return identity instanceof Promise ? identity.catch(unknown) : identity
  } catch {
    return unknown()
  }
}

/**
 * Serves the last request of a token, and removes the token before the answer, whatever the outcome. A failure to
 * remove it is not the request's, whose deed is done: nobody can use the token any more, and the expiry job finds it.
 */
export async function endingToken<T>(serve: () => MaybePromise<T>, end: () => Promise<void>, log: Logger): Promise<T> {
  try {
    return await serve()
  } finally {
    try {
      await end()
    } catch (error) {
      log.warn({ err: error }, 'a token was used up and could not be revoked; the job that removes tokens will do it')
    }
  }
}
