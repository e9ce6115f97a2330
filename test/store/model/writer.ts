import {
  covers,
  groupOf,
  leafOf,
  names,
  partsOf,
  type Registration,
  raise,
  type State,
  set,
  touchedBy,
  type Versions,
} from './database.ts'
import { L, margin, type Process, type Run } from './run.ts'
import type { Worker } from './worker.ts'

/** One read of all registrations and acknowledgements, shared by all waiting writers of a process. */
export interface Look {
  readonly began: number
  readonly ended: number
  readonly state: State
}

interface Committed {
  readonly leaves: Versions
  readonly groups: Versions
  readonly request: number
}

export function* writing(run: Run, worker: Worker): Process {
  for (;;) {
    yield -12 * Math.log(1 - run.random())
    if (worker.leaving) continue
    const line = run.choice(worker.lines)
    yield run.delay()
    while (line.copy.mode !== 'live') {
      line.move()
      yield 0.3
    }
    let object = run.chance(0.4) ? `i${run.ids - Math.floor(run.random(4))}` : run.choice(names)
    const byId = object.startsWith('i')
    if (byId && !run.database.objects.get(object)?.present) object = `i${++run.ids}`
    const { seq, present } = run.database.objects.get(object) ?? { seq: 0, present: false }
    // Only the cache key of a new id can never have existed before.
    const fresh = byId || (run.without === 'recreate' && !partsOf(set).includes(object))
    const quiet = !present && fresh
    const next = { seq: seq + 1, present: !present || run.chance(0.6) }
    const committed = commit(run, worker, object, next, quiet)
    yield run.delay()
    if (!quiet && run.without !== 'noack') yield* settle(run, worker, committed)
    run.answered.set(object, Math.max(next.seq, run.answered.get(object) ?? 0))
    run.counts.writes++
  }
}

function commit(run: Run, worker: Worker, object: string, next: { seq: number; present: boolean }, quiet: boolean) {
  const { database } = run
  const touched = quiet ? [] : [leafOf(object), ...touchedBy(object)]
  const leaves = new Map(touched.map((leaf) => [leaf, (database.leaves.get(leaf) ?? 0) + 1]))
  const changed = touched.map(groupOf)
  const groups = new Map(changed.map((group) => [group, (database.groups.get(group) ?? 0) + 1]))
  run.commit({
    objects: new Map(database.objects).set(object, next),
    leaves: new Map([...database.leaves, ...leaves]),
    groups: new Map([...database.groups, ...groups]),
  })
  return { leaves, groups, request: ++worker.requests }
}

/** From the moment the COMMIT returned: tells everybody, and waits for all registrations of a look, or for the timer. */
function* settle(run: Run, worker: Worker, committed: Committed): Process {
  const back = run.now
  const { without } = run
  worker.waiting++
  announce(run, worker, committed)
  if (!worker.looking) {
    worker.looking = true
    run.spawn(worker, looking(run, worker))
  }
  let expected: Set<Registration> | undefined
  let late: Registration[] = []
  while (run.now < back + L + margin || (without === 'patience' && expected === undefined)) {
    yield 0.2
    const { look } = worker
    if (!look || (without === 'oldlook' ? look.ended : look.began) < back) continue
    const { registrations, acks } = look.state
    expected ??= new Set(
      [...registrations].filter(([, condemned]) => !(without === 'condemned' && condemned)).map(([one]) => one),
    )
    late = [...expected].filter(
      (one) => registrations.has(one) && !acknowledged(run, worker, one, committed, acks.get(one)),
    )
    if (late.length === 0) break
  }
  worker.waiting--
  if (run.now > back + L + margin + 0.5 && worker.stoppedUntil < back) run.counts.overdue++
  for (const one of late) condemn(run, one)
}

function announce(run: Run, worker: Worker, { leaves, groups, request }: Committed): void {
  if (run.without !== 'self') raise(worker.known, leaves)
  const other = 1 - worker.slot
  worker.node.send(other, { kind: 'written', leaves, groups, writer: worker.slot, request })
  // Nudges over the network: lost or late.
  for (const far of run.nodes[1 - worker.node.number]?.workers ?? []) {
    if (run.chance(0.8)) run.spawn(far, far.poll(), run.delay())
  }
}

function acknowledged(
  run: Run,
  worker: Worker,
  registration: Registration,
  { leaves, groups, request }: Committed,
  rows: Versions | undefined,
): boolean {
  const { without } = run
  if (registration === worker.registration) return without === 'self' || covers(worker.known, leaves)
  const bySlot = without === 'slot' && registration.node === worker.node.number
  const name = bySlot ? registration.slot : without === 'incarnation' ? registration.incarnation : registration
  const said = without === 'number' ? new Map([[request, 1]]) : leaves
  return covers(rows, groups) || covers(worker.facts.get(name), said)
}

function condemn(run: Run, registration: Registration): void {
  const gone = () => run.remove((one) => one === registration)
  if (run.without === 'delete') gone()
  else if (run.database.registrations.get(registration) === false) {
    run.commit({ registrations: new Map(run.database.registrations).set(registration, true) })
    run.later(run.delay() + L + margin, gone)
  }
}

function* looking(run: Run, worker: Worker): Process {
  while (worker.waiting > 0) {
    const began = run.now
    yield run.delay()
    const { state, live } = worker.lookLine.copy.read()
    yield run.delay()
    if (state && (live || run.without === 'lookcopy')) worker.look = { began, ended: run.now, state }
    else worker.lookLine.move()
    yield 0.3
  }
  worker.looking = false
}
