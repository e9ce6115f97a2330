import type { Version, Versions } from './versions.ts'

/**
 * What the workers of one node tell each other over IPC. Each message is a fact that stays true, so that it may come
 * late, twice or to a worker that did not ask. `writer` is the incarnation of the process that committed.
 */
export type VersionMessage =
  | ({ readonly kind: 'written'; readonly writer: string } & Versions)
  | {
      readonly kind: 'learned'
      readonly writer: string
      readonly registration: string
      readonly leaves: readonly Version[]
    }
