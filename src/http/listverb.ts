import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { receive } from './turnshare.ts'

/*
 * Node's HTTP parser answers 400 to the method LIST by itself. Here `LIST ` is rewritten to `LINK ` (as long, and known
 * to the parser) in front of it, and that one message is given the method LIST; a real LINK stays one.
 *
 * Why nothing can be smuggled: bytes change only where Node's own parser has finished one message and not begun the
 * next, so they belong to no body and no header. A chunk is cut before each `LIST `, and the part before the cut is fed
 * first: the parser itself has then said where its message ends. Everything else goes through as it came.
 */

/** The parts of Node's inside that this file uses; listproof.ts shows at start that it is still so. */
interface Parser {
  onIncoming: (request: IncomingMessage, keepAlive: boolean) => unknown
  readonly constructor: { readonly kOnMessageBegin: number }
  /** Callbacks by number. Node clears this one, and onIncoming, when the connection ends. */
  [kOnMessageBegin: number]: () => void
}

const verb = Buffer.from('LIST ')
const known = Buffer.from('LINK ')

/** Cuts of one chunk that met the middle of a message. A LIST behind them in that chunk is answered 400. */
const maxFalseCuts = 32

/** Lets a server (plain or TLS, not yet listening) take the method LIST on every connection. */
export function acceptListVerb(server: Server): void {
  // After Node's own listener of the same event, which has made the parser by then.
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', takeOver)
}

function takeOver(socket: Socket & { readonly parser?: Parser | null }): void {
  const { parser } = socket
  const [execute] = socket.listeners('data')
  if (!parser || execute === undefined) throw new Error('this Node hands sockets over differently')
  const feeder = new Feeder(socket, parser, execute as (bytes: Buffer) => void)
  socket.removeListener('data', execute as (chunk: Buffer) => void)
  receive(socket, (chunk) => feeder.receive(chunk))
}

/** Feeds the bytes of a connection to its parser, in the pieces that the rewriting needs. */
class Feeder {
  readonly #socket: Socket & { readonly parser?: Parser | null }
  readonly #parser: Parser
  readonly #execute: (bytes: Buffer) => void
  #message: IncomingMessage | 'begun' | undefined
  #rewritten = false
  /** Bytes of `LIST ` at the end of the last chunk. The first of them is fed, so that Node's timers see a request. */
  #held = 0

  constructor(socket: Socket, parser: Parser, execute: (bytes: Buffer) => void) {
    this.#socket = socket
    this.#parser = parser
    this.#execute = execute
    parser[parser.constructor.kOnMessageBegin] = () => {
      this.#message = 'begun'
    }
    const { onIncoming } = parser
    parser.onIncoming = (request, keepAlive) => {
      this.#message = request
      if (this.#rewritten) request.method = 'LIST'
      this.#rewritten = false
      return onIncoming(request, keepAlive)
    }
  }

  receive(chunk: Buffer): void {
    const bytes = this.#held === 0 ? chunk : this.#unhold(chunk)
    if (bytes === undefined) return
    let fed = 0
    let falseCuts = 0
    let cut = nextCut(bytes, 0)
    while (cut >= 0 && falseCuts < maxFalseCuts) {
      if (cut > fed) {
        if (!this.#feed(bytes.subarray(fed, cut))) return
        fed = cut
        // A client that sends and does not read: Node has paused the parser, which must not be fed now.
        if (this.#socket.isPaused()) {
          this.#socket.unshift(bytes.subarray(cut))
          return
        }
      }
      if (!this.#isBetweenMessages()) falseCuts++
      else if (bytes.length - cut < verb.length) {
        this.#held = bytes.length - cut
        this.#feed(bytes.subarray(cut, cut + 1))
        return
      } else {
        known.copy(bytes, cut)
        this.#rewritten = true
      }
      cut = nextCut(bytes, cut + 1)
    }
    this.#feed(bytes.subarray(fed))
  }

  #isBetweenMessages(): boolean {
    return this.#message === undefined || (this.#message !== 'begun' && this.#message.complete)
  }

  /** @returns whether the connection still stands */
  #feed(bytes: Buffer): boolean {
    this.#execute.call(this.#socket, bytes)
    return this.#socket.parser === this.#parser && !this.#socket.destroyed
  }

  /** The bytes to feed, now that more of a possible `LIST ` has come; undefined while it is not decided. */
  #unhold(chunk: Buffer): Buffer | undefined {
    const rest = verb.subarray(this.#held)
    const shared = Math.min(rest.length, chunk.length)
    const same = rest.compare(chunk, 0, shared, 0, shared) === 0
    if (same && chunk.length < rest.length) {
      this.#held += chunk.length
      return undefined
    }
    const begun = (same ? known : verb).subarray(1, this.#held)
    this.#held = 0
    this.#rewritten = same
    if (same) known.copy(chunk, 0, known.length - rest.length)
    return Buffer.concat([begun, chunk])
  }
}

/** Where the next `LIST `, or a beginning of it at the very end, stands; −1 for nowhere. */
function nextCut(bytes: Buffer, from: number): number {
  const whole = bytes.indexOf(verb, from)
  if (whole >= 0) return whole
  for (let length = Math.min(verb.length - 1, bytes.length - from); length > 0; length--) {
    if (verb.compare(bytes, bytes.length - length, bytes.length, 0, length) === 0) return bytes.length - length
  }
  return -1
}
