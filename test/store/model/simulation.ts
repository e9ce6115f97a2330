import { Node } from './node.ts'
import type { Change } from './rules.ts'
import { type Counts, type Process, World } from './world.ts'

/** A stranger with access to the port of the nudges. */
function* forging(world: World, nodes: readonly Node[]): Process {
  for (;;) {
    yield world.between(1, 15)
    const worker = world.choice(world.choice(nodes).workers)
    world.spawn(worker, worker.poll())
  }
}

/**
 * Runs one random history of two nodes with two workers each over three database nodes, for 200 units; L is 10 units.
 */
export function simulate(seed: number, without?: Change): Counts {
  const world = new World(seed, without)
  const nodes = [new Node(world, 0), new Node(world, 1)]
  world.nodes = nodes
  world.spawn(undefined, forging(world, nodes))
  world.go(200)
  return world.counts
}
