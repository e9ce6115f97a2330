/**
 * Version of the messages between processes of this program; raised with every change that an earlier program would
 * misread.
 */
export const messageVersion = 2

/** A message on its way from one process to another. */
export interface Envelope<M> {
  readonly version: number
  readonly message: M
}

/** A message with the version of its sender. */
export const enclose = <M>(message: M, version = messageVersion): Envelope<M> => ({ version, message })

/**
 * The message in an envelope. Versions differ where files were replaced under a running supervisor: it starts workers
 * from the new ones.
 * @throws Error naming both versions
 */
export function unwrapMessage<M>(envelope: Envelope<M>, known = messageVersion): M {
  const { version, message } = envelope
  if (version === known) return message
  throw new Error(
    `messages of version ${version ?? 'unknown'} come, and this process knows version ${known}: the program was replaced under a running supervisor; strongroom reload --exec starts the new one`,
  )
}
