import { leafOf, names, partsOf, set } from './database.ts'
import type { Fill, Worker } from './worker.ts'
import { L, type Process, type World } from './world.ts'

/** An object to read, and the writes to it that had been answered when the read began. */
interface Wanted {
  readonly object: string
  readonly floor: readonly number[]
  /** Whether the read goes through the cache. */
  readonly cached: boolean
}

export function* reading(world: World, worker: Worker): Process {
  for (;;) {
    yield world.random()
    if (worker.leaving && (world.without !== 'leave' || worker.registration === undefined)) continue
    const object = world.chance(0.2)
      ? set
      : world.chance(0.7)
        ? world.choice(names)
        : `i${world.ids - Math.floor(world.random(6)) + 1}`
    const floor = partsOf(object).map((part) => world.answered.get(part) ?? 0)
    if (world.chance(0.15)) {
      yield* read(world, worker, { object, floor, cached: false })
      continue
    }
    if ((world.without === 'compose' || world.without === 'composeone') && object === set) yield* compose(world, worker)
    const entry = worker.cache.get(object)
    if (entry && worker.usable(entry)) world.judge(entry.seqs, floor)
    else if (worker.registration !== undefined || world.without === 'late')
      yield* read(world, worker, { object, floor, cached: true })
  }
}

/** Makes the set from cached parts, stamped with the known version. */
function* compose(world: World, worker: Worker): Process {
  const usable = (object: string) => {
    const entry = worker.cache.get(object)
    return entry && worker.usable(entry) ? entry : undefined
  }
  if (usable(set)) return
  const parts = partsOf(set)
  for (const part of parts) if (!usable(part)) yield* read(world, worker, { object: part, floor: [0], cached: true })
  const entries = parts.flatMap((part) => usable(part) ?? [])
  if (entries.length < parts.length) return
  const leaf = leafOf(set)
  worker.cache.set(set, { seqs: entries.flatMap(({ seqs }) => seqs), stamp: worker.known.get(leaf) ?? -1, leaf })
}

function* read(world: World, worker: Worker, { object, floor, cached }: Wanted): Process {
  const { began } = worker
  const running = cached ? worker.fills.get(object) : undefined
  const joined = running !== undefined && world.now - running.at < 40
  const fill: Fill = joined ? running : { at: world.now }
  if (joined) while (!fill.found && !fill.failed) yield 0.2
  else {
    if (cached) worker.fills.set(object, fill)
    yield* carryOut(world, worker, fill, object, cached)
    if (worker.fills.get(object) === fill) worker.fills.delete(object)
  }
  if (!fill.found) return
  const { live, present, entry } = fill.found
  const lease = world.without === 'lease' || world.without === 'leaseone'
  const trusted = world.without === 'unchecked' || (lease ? world.now - began < L : live)
  const whole = present || object === set
  // Absence that another caller's fill found is not for a caller that came later.
  const believed = cached && whole ? worker.usable(entry) : trusted && (!joined || world.without === 'join')
  if (believed) world.judge(entry.seqs, floor)
}

/** The statements of a fill: does the node take writes, and the rows with v of their leaf. */
function* carryOut(world: World, worker: Worker, fill: Fill, object: string, cached: boolean): Process {
  const line = world.choice(worker.lines)
  const { life } = worker
  if (world.chance(0.1)) line.move()
  yield world.delay()
  const { copy } = line
  let said: boolean | undefined
  // Asked in the statement that reads, or in a causal one before it.
  if (world.without === 'dry') said = copy.mode !== 'frozen'
  else if (world.without !== 'after' && world.chance(0.5)) said = copy.read().live
  if (said !== undefined) yield world.delay() + (world.chance(0.1) ? world.random(4) : 0)
  const { state, live: now } = copy.read()
  let live = now
  if (world.without === 'once') {
    said = line.tookWrites
    line.tookWrites = now
  }
  if (world.without === 'after') {
    yield world.delay()
    live = copy.mode === 'live'
  }
  live = said ?? live
  if (state === undefined) {
    line.move()
    fill.failed = true
    return
  }
  const leaf = leafOf(object)
  let stamp = state.leaves.get(leaf) ?? 0
  if (world.without === 'split') {
    yield world.delay()
    stamp = (copy.mode === 'live' ? world.database : copy.state).leaves.get(leaf) ?? 0
  }
  yield world.delay()
  const rows = partsOf(object).map((part) => state.objects.get(part) ?? { seq: 0, present: false })
  const present = rows.every((row) => row.present)
  const entry = { seqs: rows.map(({ seq }) => seq), stamp, leaf }
  fill.found = { live, present, entry }
  if (!live && world.chance(0.3)) line.move()
  const keep = cached && (life === worker.life || world.without === 'gen')
  if (keep && (present || object === set || world.without === 'absent')) worker.cache.set(object, entry)
}
