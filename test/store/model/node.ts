import { reading } from './reader.ts'
import { Worker } from './worker.ts'
import { Log, type Process, type Supervisor, type World } from './world.ts'
import { writing } from './writer.ts'

/** A supervisor and its workers. */
export class Node implements Supervisor {
  readonly number: number
  readonly workers: Worker[]
  readonly log: Log
  readonly #world: World

  constructor(world: World, number: number) {
    this.number = number
    this.#world = world
    this.log = new Log(world.choice([1, 4]))
    this.workers = [0, 1].map((slot) => this.#start(slot))
    for (const slot of [0, 1]) world.spawn(undefined, this.#lives(slot))
  }

  #start(slot: number): Worker {
    const world = this.#world
    const worker = new Worker(world, this, slot)
    const all = [worker.polling(), reading(world, worker), writing(world, worker), reading(world, worker)]
    for (const process of [...all, writing(world, worker)]) world.spawn(worker, process)
    return worker
  }

  /** Deletes the registrations of an ended process. */
  forget({ slot, incarnation }: Pick<Worker, 'slot' | 'incarnation'>): void {
    this.#world.remove((one) =>
      this.#world.without === 'slotdelete'
        ? one.node === this.number && one.slot === slot
        : one.incarnation === incarnation,
    )
  }

  /** One process after the other. One that hangs is replaced at once, and may wake and serve until it is killed. */
  *#lives(slot: number): Process {
    const world = this.#world
    for (;;) {
      yield world.between(15, 90) * Math.sqrt(world.calm)
      const worker = this.workers[slot]
      if (!worker) return
      const fate = world.choice(['stop', 'stop', 'kill', 'hang', 'leave'])
      let end = world.now
      if (fate === 'stop') {
        worker.stoppedUntil = world.now + world.between(1, world.chance(0.7) ? 12 : 30)
        continue
      }
      if (fate === 'hang') {
        worker.stoppedUntil = world.now + world.between(1, 12)
        end = worker.stoppedUntil + world.random(12)
        if (world.without === 'kill') this.forget(worker)
      }
      if (fate === 'leave') {
        worker.leaving = true
        end = world.now + world.between(1, 5)
      }
      world.later(end - world.now, () => worker.end())
      yield world.random()
      this.workers[slot] = this.#start(slot)
    }
  }
}
