/**
 * Asked right before an object of a KEK is made or destroyed.
 * @throws Error when this process is no longer the only one that does so in the token
 */
export type Alone = () => Promise<void>
