import type { Logger } from '../../log.ts'
import type { Supervisor } from '../../supervisor.ts'
import type { Handover } from './handover.ts'
import type { Word } from './line.ts'
import type { Predecessor } from './predecessor.ts'
import { Successor } from './successor.ts'

export interface UpgradeOptions {
  /** Node and the program of this installation, with its arguments. @throws Error if there is no program to start */
  command(): readonly string[]
  readonly supervisor: Supervisor
  /** The program from which this one took over. */
  readonly predecessor: Predecessor | undefined
  readonly log: Logger
  /** Until one worker more of the new program serves. */
  readonly deadlineMilliseconds: number
  handover(): Omit<Handover, 'sockets'>
  /** Called when an upgrade is asked for, and when one worker more of the new program serves. Must not throw. */
  onProgress(): void
  /** Called at the end of each; with the reason when the old program goes on. Must not throw. */
  onOutcome(failure: string | undefined): void
}

/**
 * Upgrades in service: the new program starts beside the old one, on the same listening sockets; when it serves, the
 * old one is drained. Its process ends, except the first of a node, whose end its starter waits for: that one stays. If
 * the new program never serves, nothing changes.
 */
export class Upgrade {
  readonly #options: UpgradeOptions
  #candidate: Successor | undefined
  #successor: Successor | undefined
  #drained = false
  #last: Promise<void> = Promise.resolve()

  constructor(options: UpgradeOptions) {
    this.#options = options
  }

  /** Whether the new program is starting. */
  get running(): boolean {
    return this.#candidate !== undefined
  }

  /** Resolves when no new program is starting. */
  get settled(): Promise<void> {
    return this.#last
  }

  /** This program is drained, or has ended. @returns its exit code, when its process may end as well */
  async finish(exitCode: number): Promise<number> {
    const { predecessor, supervisor } = this.#options
    if (this.#successor === undefined) {
      // A program that never took over leaves the line to the one that goes on.
      if (supervisor.started) predecessor?.line.report(exitCode)
      return exitCode
    }
    // The end of this process tells the successor that it is drained.
    predecessor?.line.leave()
    if (this.#successor.line === undefined) return exitCode
    this.#successor.post({ type: 'drained' })
    this.#drained = true
    return this.#successor.line.ended
  }

  start(): Promise<void> {
    this.#options.onProgress()
    if (!this.running) this.#last = this.#start()
    return this.#last
  }

  async #start(): Promise<void> {
    const { supervisor, log, onOutcome } = this.#options
    const obstacle = this.#obstacle
    if (obstacle !== undefined) {
      log.warn(`no upgrade: ${obstacle}`)
      onOutcome(obstacle)
      return
    }
    try {
      this.#candidate = this.#launch()
      await this.#candidate.ready
    } catch (error) {
      this.#candidate?.kill()
      this.#candidate = undefined
      log.error({ err: error }, 'the new program does not serve; this one goes on')
      onOutcome((error as Error).message)
      return
    }
    // It serves: from here on no failure may end it.
    this.#successor = this.#candidate
    this.#candidate = undefined
    log.info({ successorPid: this.#successor.pid }, 'the new program serves; this one is drained')
    supervisor.retire()
    onOutcome(undefined)
  }

  get #obstacle(): string | undefined {
    const { supervisor, predecessor } = this.#options
    if (!supervisor.serving) return 'this node does not serve yet, or ends'
    // A seal can reach only one other program.
    return predecessor?.drained === false ? 'the program before this one is still being drained' : undefined
  }

  #launch(): Successor {
    const { command, supervisor, predecessor, log, deadlineMilliseconds, handover, onProgress } = this.#options
    const candidate = new Successor({
      ...{ command: command(), handover: handover(), sockets: supervisor.sockets, deadlineMilliseconds, onProgress },
      follows: predecessor !== undefined,
      onPeer: supervisor.hearPeer.bind(supervisor),
    })
    supervisor.meet(candidate.peer)
    candidate.gone.then(() => supervisor.leave(candidate.peer))
    log.info({ successorPid: candidate.pid }, 'the new program starts')
    return candidate
  }

  /** The node is asked to end while the new program is starting. */
  abandon(): void {
    this.#candidate?.kill()
  }

  /** Passes on a request to this process. @returns false when there is no successor to handle it */
  pass(word: Word): boolean {
    // The successor may have one of its own by now, but not before this program is drained.
    if (this.#drained) this.#successor?.line?.say(word)
    else this.#successor?.post({ type: word })
    return this.#successor !== undefined
  }
}
