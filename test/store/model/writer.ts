import {
  covers,
  groupOf,
  leafOf,
  names,
  partsOf,
  type Registration,
  set,
  touchedBy,
  type Versions,
} from './database.ts'
import type { Worker } from './worker.ts'
import { type Committed, L, margin, type Process, type World } from './world.ts'

export function* writing(world: World, worker: Worker): Process {
  for (;;) {
    yield -12 * Math.log(1 - world.random())
    if (worker.leaving) continue
    const line = world.choice(worker.lines)
    yield world.delay()
    while (line.copy.mode !== 'live') {
      line.move()
      yield 0.3
    }
    let object = world.chance(0.4) ? `i${world.ids - Math.floor(world.random(4))}` : world.choice(names)
    const byId = object.startsWith('i')
    if (byId && !world.database.objects.get(object)?.present) object = `i${++world.ids}`
    const { seq, present } = world.database.objects.get(object) ?? { seq: 0, present: false }
    // Only the cache key of a new id can never have existed before.
    const fresh = byId || (world.without === 'recreate' && !partsOf(set).includes(object))
    const quiet = !present && fresh
    const next = { seq: seq + 1, present: !present || world.chance(0.6) }
    const committed = commit(world, object, next, quiet)
    yield world.delay()
    if (!quiet && world.without !== 'noack') yield* settle(world, worker, committed)
    world.answered.set(object, Math.max(next.seq, world.answered.get(object) ?? 0))
    world.counts.writes++
  }
}

function commit(world: World, object: string, next: { seq: number; present: boolean }, quiet: boolean) {
  const { database } = world
  const touched = quiet ? [] : [leafOf(object), ...touchedBy(object)]
  const leaves = new Map(touched.map((leaf) => [leaf, (database.leaves.get(leaf) ?? 0) + 1]))
  const changed = touched.map(groupOf)
  const groups = new Map(changed.map((group) => [group, (database.groups.get(group) ?? 0) + 1]))
  world.commit({
    objects: new Map(database.objects).set(object, next),
    leaves: new Map([...database.leaves, ...leaves]),
    groups: new Map([...database.groups, ...groups]),
  })
  return { leaves, groups }
}

/**
 * From the moment the COMMIT returned: tells everybody, and waits for all registrations of a look, or for the timer.
 */
function* settle(world: World, worker: Worker, committed: Committed): Process {
  const back = world.now
  const { without } = world
  worker.waiting++
  const tooLate = without === 'unlogged' && worker.attached
  if (tooLate) world.later(world.delay(), () => void announce(world, worker, committed))
  const logged = tooLate || announce(world, worker, committed)
  if (!worker.looking) {
    worker.looking = true
    world.spawn(worker, looking(world, worker))
  }
  let expected: Set<Registration> | undefined
  let late: Registration[] = []
  while (world.now < back + L + margin || (without === 'patience' && expected === undefined)) {
    yield 0.2
    const { look } = worker
    if (!look || (without === 'oldlook' ? look.ended : look.began) < back) continue
    const { registrations, acks } = look.state
    expected ??= new Set(
      [...registrations].filter(([, condemned]) => !(without === 'condemned' && condemned)).map(([one]) => one),
    )
    late = [...expected].filter(
      (one) => registrations.has(one) && !acknowledged(world, worker, one, { ...committed, logged }, acks),
    )
    if (late.length === 0) break
  }
  worker.waiting--
  if (world.now > back + L + margin + 0.5 && worker.stoppedUntil < back) world.counts.overdue++
  for (const one of late) condemn(world, one)
}

/** @returns whether the commit is in the log */
function announce(world: World, worker: Worker, committed: Committed): boolean {
  const logged = worker.publish(committed)
  // Nudges over the network: lost or late. One worker polls for all who share the log.
  const far = world.choice(world.nodes[1 - worker.node.number]?.workers ?? [])
  if (world.chance(0.8)) world.spawn(far, far.poll(), world.delay())
  return logged
}

function acknowledged(
  world: World,
  worker: Worker,
  registration: Registration,
  { leaves, groups, logged }: Committed & { readonly logged: boolean },
  acks: ReadonlyMap<Registration, Versions>,
): boolean {
  const { without } = world
  if (registration === worker.registration) return without === 'self' || covers(worker.known, leaves)
  const { log, node } = registration
  const reads =
    without === 'unattached'
      ? node === worker.node.number
      : without === 'otherlog'
        ? log !== undefined
        : log === worker.node.number
  // An acknowledgement counts for all who share the log.
  const theirs = [...acks].filter(
    ([one]) => one === registration || (log !== undefined && one.log === log) || without === 'stranger',
  )
  return (logged && reads) || theirs.some(([, rows]) => covers(rows, groups))
}

function condemn(world: World, registration: Registration): void {
  const gone = () => world.remove((one) => one === registration)
  if (world.without === 'delete') gone()
  else if (world.database.registrations.get(registration) === false) {
    world.commit({ registrations: new Map(world.database.registrations).set(registration, true) })
    world.later(world.delay() + L + margin, gone)
  }
}

function* looking(world: World, worker: Worker): Process {
  while (worker.waiting > 0) {
    const began = world.now
    yield world.delay()
    const { state, live } = worker.lookLine.copy.read()
    yield world.delay()
    if (state && (live || world.without === 'lookcopy')) worker.look = { began, ended: world.now, state }
    else worker.lookLine.move()
    yield 0.3
  }
  worker.looking = false
}
