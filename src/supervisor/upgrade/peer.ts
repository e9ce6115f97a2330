import type { Recipient, ToWorker } from '../messages.ts'
import type { PeerMessage } from './handover.ts'

/** The other supervisor of an upgrade, one more worker for sealing: it has followed when all of its workers have. */
export class Peer implements Recipient {
  readonly patience = 2
  readonly #post: (message: PeerMessage) => void
  /** Ends it with its workers; a successor cannot end its predecessor. */
  readonly kill: () => void
  #asked = 0

  constructor(post: (message: PeerMessage) => void, kill: () => void = () => {}) {
    this.#post = post
    this.kill = kill
  }

  /** The other has sealed or unsealed, and waits for this node's workers. */
  asks(sequence: number): void {
    this.#asked = sequence
  }

  send(message: ToWorker): void {
    if (message.type === 'seal') this.#post(message)
    else if (message.type === 'sealDone') this.#post({ type: 'sealed', sequence: this.#asked })
  }
}
