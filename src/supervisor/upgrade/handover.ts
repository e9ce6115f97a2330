import type { Inherited } from '../listening.ts'
import type { Word } from './line.ts'

/** Version of the messages between the supervisors of an upgrade; changed more rarely than that of other messages. */
export const handoverVersion = 3

/** Data for the supervisor that takes over, sent over an inherited channel instead of in arguments or variables. */
export interface Handover {
  /** By the address of their listener. */
  readonly sockets: readonly (readonly [address: string, socket: Inherited])[]
  /** Chosen for listeners with port 0. */
  readonly ports: readonly (readonly [configured: string, chosen: string])[]
  /** The variables of the configuration, which may hold secrets and are in no process's environment any more. */
  readonly environment: Readonly<Record<string, string>>
  /** As an operator typed it; null where the configuration names its source. */
  readonly pin: string | null
  /** Set where the node is sealed: its state directory may not have taken that. */
  readonly sealed?: boolean
}

/** Between both: the node is sealed or unsealed, and the other's workers have followed. */
export type PeerMessage =
  | { readonly type: 'seal'; readonly sealed: boolean; readonly sequence: number }
  | { readonly type: 'sealed'; readonly sequence: number }

/** From the running supervisor to its successor. */
export type ToSuccessor =
  | PeerMessage
  | { readonly type: 'handover'; readonly handover: Handover }
  /** Its last worker has ended. */
  | { readonly type: 'drained' }
  /** The signals that it gets until then, or hears of. */
  | { readonly type: Word }

/** From the successor. */
export type ToPredecessor =
  | PeerMessage
  /** It accepts connections and every worker serves. */
  | { readonly type: 'ready' }
  /** One worker more serves. */
  | { readonly type: 'progress' }
  | { readonly type: 'failed'; readonly reason: string }
