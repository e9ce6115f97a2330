import type { Versions } from './database.ts'
import type { Process, Run } from './run.ts'
import { Worker } from './worker.ts'

/** A worker has committed these versions and asks who has learned them. */
export interface Written {
  readonly leaves: Versions
  readonly groups: Versions
  readonly writer: number
  readonly request: number
}

/** What workers of one node send each other: a question, or a fact about `name` that stays true. */
export type Message =
  | ({ readonly kind: 'written' } & Written)
  | { readonly kind: 'learned'; readonly name: unknown; readonly leaves: Versions }

/** A supervisor and its workers. */
export class Node {
  readonly number: number
  readonly workers: Worker[]
  readonly #run: Run

  constructor(run: Run, number: number) {
    this.number = number
    this.#run = run
    this.workers = [0, 1].map((slot) => new Worker(run, this, slot))
    for (const slot of [0, 1]) run.spawn(undefined, this.#lives(slot))
  }

  /** Over IPC, to whichever process has the slot when it arrives; sometimes lost, twice or late. */
  send(slot: number, message: Message): void {
    const run = this.#run
    const copies = run.chance(0.03) ? 0 : run.chance(0.03) ? 2 : 1
    for (let n = 0; n < copies; n++) {
      run.later(run.chance(0.9) ? run.delay() : run.random(30), () => {
        const worker = this.workers[slot]
        if (worker) run.spawn(worker, worker.hear(message))
      })
    }
  }

  /** Deletes what an ended process had registered. */
  forget({ slot, incarnation }: Worker): void {
    this.#run.remove((one) =>
      this.#run.without === 'slotdelete'
        ? one.node === this.number && one.slot === slot
        : one.incarnation === incarnation,
    )
  }

  /** One process after the other. One that hangs is replaced at once, and may wake up and serve until the kill takes. */
  *#lives(slot: number): Process {
    const run = this.#run
    for (;;) {
      yield run.between(15, 90) * Math.sqrt(run.calm)
      const worker = this.workers[slot]
      if (!worker) return
      const fate = run.choice(['stop', 'stop', 'kill', 'hang', 'leave'])
      let end = run.now
      if (fate === 'stop') {
        worker.stoppedUntil = run.now + run.between(1, run.chance(0.7) ? 12 : 30)
        continue
      }
      if (fate === 'hang') {
        worker.stoppedUntil = run.now + run.between(1, 12)
        end = worker.stoppedUntil + run.random(12)
        if (run.without === 'kill') this.forget(worker)
      }
      if (fate === 'leave') {
        worker.leaving = true
        end = run.now + run.between(1, 5)
      }
      run.later(end - run.now, () => worker.end())
      yield run.random()
      this.workers[slot] = new Worker(run, this, slot)
    }
  }
}
