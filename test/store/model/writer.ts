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
import { L, margin, type Process, type World } from './world.ts'

interface Committed {
  readonly leaves: Versions
  readonly groups: Versions
  readonly request: number
}

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
    const committed = commit(world, worker, object, next, quiet)
    yield world.delay()
    if (!quiet && world.without !== 'noack') yield* settle(world, worker, committed)
    world.answered.set(object, Math.max(next.seq, world.answered.get(object) ?? 0))
    world.counts.writes++
  }
}

function commit(world: World, worker: Worker, object: string, next: { seq: number; present: boolean }, quiet: boolean) {
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
  return { leaves, groups, request: ++worker.requests }
}

/**
 * From the moment the COMMIT returned: tells everybody, and waits for all registrations of a look, or for the timer.
 */
function* settle(world: World, worker: Worker, committed: Committed): Process {
  const back = world.now
  const { without } = world
  worker.waiting++
  announce(world, worker, committed)
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
      (one) => registrations.has(one) && !acknowledged(world, worker, one, committed, acks.get(one)),
    )
    if (late.length === 0) break
  }
  worker.waiting--
  if (world.now > back + L + margin + 0.5 && worker.stoppedUntil < back) world.counts.overdue++
  for (const one of late) condemn(world, one)
}

function announce(world: World, worker: Worker, { leaves, groups, request }: Committed): void {
  if (world.without !== 'self') worker.learn({ leaves, groups })
  const other = 1 - worker.slot
  worker.node.send(other, { kind: 'written', leaves, groups, writer: worker.slot, request })
  // Nudges over the network: lost or late.
  for (const far of world.nodes[1 - worker.node.number]?.workers ?? []) {
    if (world.chance(0.8)) world.spawn(far, far.poll(), world.delay())
  }
}

function acknowledged(
  world: World,
  worker: Worker,
  registration: Registration,
  { leaves, groups, request }: Committed,
  rows: Versions | undefined,
): boolean {
  const { without } = world
  if (registration === worker.registration) return without === 'self' || covers(worker.known, leaves)
  const bySlot = without === 'slot' && registration.node === worker.node.number
  const name = bySlot ? registration.slot : without === 'incarnation' ? registration.incarnation : registration
  const said = without === 'number' ? new Map([[request, 1]]) : leaves
  return covers(rows, groups) || covers(worker.facts.get(name), said)
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
