import { type Envelope, enclose, unwrapMessage } from '../envelope.ts'
import { type Handover, handoverVersion, type ToPredecessor, type ToSuccessor } from './handover.ts'
import { FarLine } from './line.ts'
import { Peer } from './peer.ts'

/** The running supervisor from which this one takes over, its parent. */
export class Predecessor {
  readonly handover: Promise<Handover>
  readonly peer: Peer
  /** The line to the process that was started first. */
  readonly line = new FarLine()
  /** Whether its last worker has ended. */
  drained = false
  /** Whether the node is sealed, until this program carries that to its own workers. */
  sealed = false
  /** Takes every message after the handover. */
  onMessage: (message: Exclude<ToSuccessor, { type: 'handover' }>) => void

  /** @throws Error when this process was not started by a supervisor as its successor */
  constructor() {
    if (!process.connected) throw new Error('--successor is for the running server alone: use strongroom reload --exec')
    const handover = Promise.withResolvers<Handover>()
    this.handover = handover.promise
    this.peer = new Peer((message) => this.post(message))
    // Until the supervisor is made there is no worker to seal, and its first one begins in this state.
    this.onMessage = (message) => {
      if (message.type === 'kill' || message.type === 'stop') process.exit(1)
      if (message.type !== 'seal') return
      this.sealed = message.sealed
      this.post({ type: 'sealed', sequence: message.sequence })
    }
    process.on('message', (envelope: Envelope<ToSuccessor>) => {
      try {
        const message = unwrapMessage(envelope, handoverVersion)
        if (message.type === 'handover') {
          this.sealed = message.handover.sealed ?? false
          handover.resolve(message.handover)
        } else this.onMessage(message)
      } catch (error) {
        handover.reject(error)
      }
    })
    process.once('disconnect', () => handover.reject(new Error('the running server has ended')))
  }

  /** This program cannot start. An open channel would keep its process alive. */
  refuse(reason: string): void {
    this.post({ type: 'failed', reason })
    if (process.connected) process.disconnect()
  }

  post(message: ToPredecessor): void {
    if (process.connected) process.send?.(enclose(message, handoverVersion), undefined, undefined, () => {})
  }
}
