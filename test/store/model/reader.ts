import { leafOf, names, partsOf, set } from './database.ts'
import { L, type Process, type Run } from './run.ts'
import type { Fill, Worker } from './worker.ts'

/** Something that is read, and what had been answered for as the read began. */
interface Wanted {
  readonly object: string
  readonly floor: readonly number[]
  /** For the cache; else a read that is not cached at all. */
  readonly cached: boolean
}

export function* reading(run: Run, worker: Worker): Process {
  for (;;) {
    yield run.random()
    if (worker.leaving && (run.without !== 'leave' || worker.registration === undefined)) continue
    const object = run.chance(0.2)
      ? set
      : run.chance(0.7)
        ? run.choice(names)
        : `i${run.ids - Math.floor(run.random(6)) + 1}`
    const floor = partsOf(object).map((part) => run.answered.get(part) ?? 0)
    if (run.chance(0.15)) {
      yield* read(run, worker, { object, floor, cached: false })
      continue
    }
    if ((run.without === 'compose' || run.without === 'composeone') && object === set) yield* compose(run, worker)
    const entry = worker.cache.get(object)
    if (entry && worker.usable(entry)) run.judge(entry.seqs, floor)
    else if (worker.registration !== undefined || run.without === 'late')
      yield* read(run, worker, { object, floor, cached: true })
  }
}

/** Makes the set of cached parts, stamped with what is known. */
function* compose(run: Run, worker: Worker): Process {
  const usable = (object: string) => {
    const entry = worker.cache.get(object)
    return entry && worker.usable(entry) ? entry : undefined
  }
  if (usable(set)) return
  const parts = partsOf(set)
  for (const part of parts) if (!usable(part)) yield* read(run, worker, { object: part, floor: [0], cached: true })
  const entries = parts.flatMap((part) => usable(part) ?? [])
  if (entries.length < parts.length) return
  const leaf = leafOf(set)
  worker.cache.set(set, { seqs: entries.flatMap(({ seqs }) => seqs), stamp: worker.known.get(leaf) ?? -1, leaf })
}

function* read(run: Run, worker: Worker, { object, floor, cached }: Wanted): Process {
  const { began } = worker
  const running = cached ? worker.fills.get(object) : undefined
  const joined = running !== undefined && run.now - running.at < 40
  const fill: Fill = joined ? running : { at: run.now }
  if (joined) while (!fill.found && !fill.failed) yield 0.2
  else {
    if (cached) worker.fills.set(object, fill)
    yield* carryOut(run, worker, fill, object, cached)
    if (worker.fills.get(object) === fill) worker.fills.delete(object)
  }
  if (!fill.found) return
  const { live, present, entry } = fill.found
  const lease = run.without === 'lease' || run.without === 'leaseone'
  const trusted = run.without === 'unchecked' || (lease ? run.now - began < L : live)
  const whole = present || object === set
  // Absence that another caller's fill found is not for a caller that came later.
  const believed = cached && whole ? worker.usable(entry) : trusted && (!joined || run.without === 'join')
  if (believed) run.judge(entry.seqs, floor)
}

/** The statements of a fill: does the node take writes, and the rows with v of their leaf. */
function* carryOut(run: Run, worker: Worker, fill: Fill, object: string, cached: boolean): Process {
  const line = run.choice(worker.lines)
  const { life } = worker
  if (run.chance(0.1)) line.move()
  yield run.delay()
  const { copy } = line
  let said: boolean | undefined
  // Asked in the statement that reads, or in a causal one before it.
  if (run.without === 'dry') said = copy.mode !== 'frozen'
  else if (run.without !== 'after' && run.chance(0.5)) said = copy.read().live
  if (said !== undefined) yield run.delay() + (run.chance(0.1) ? run.random(4) : 0)
  const { state, live: now } = copy.read()
  let live = now
  if (run.without === 'once') {
    said = line.tookWrites
    line.tookWrites = now
  }
  if (run.without === 'after') {
    yield run.delay()
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
  if (run.without === 'split') {
    yield run.delay()
    stamp = (copy.mode === 'live' ? run.database : copy.state).leaves.get(leaf) ?? 0
  }
  yield run.delay()
  const rows = partsOf(object).map((part) => state.objects.get(part) ?? { seq: 0, present: false })
  const present = rows.every((row) => row.present)
  const entry = { seqs: rows.map(({ seq }) => seq), stamp, leaf }
  fill.found = { live, present, entry }
  if (!live && run.chance(0.3)) line.move()
  const keep = cached && (life === worker.life || run.without === 'gen')
  if (keep && (present || object === set || run.without === 'absent')) worker.cache.set(object, entry)
}
