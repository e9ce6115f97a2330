import type { Phase, Role } from './policy.ts'

/** One process of the node, as far as planning looks at it. */
export interface Member {
  readonly id: number
  readonly role: Role
  readonly phase: Phase
  /** Runs the current configuration and is not oversized. */
  readonly fresh: boolean
}

export interface Situation {
  readonly members: readonly Member[]
  /** How many workers there should be. */
  readonly wanted: number
  /** False while backing off, and after a refused PIN until a new one comes. */
  readonly mayStart: boolean
  /** False before any worker ever served (a failed start then ends the server) and while the stand-in backs off. */
  readonly mayStandIn: boolean
  readonly stopping: boolean
}

export type Step = { readonly do: 'start'; readonly role: Role } | { readonly do: 'drain'; readonly id: number }

/**
 * The next steps. Three rules: workers start one at a time (a wrong PIN meets the token once); a stale one leaves only
 * when a fresh one serves in its place; while no worker serves, the stand-in does.
 */
export function plan(situation: Situation): Step[] {
  const present = situation.members.filter((member) => member.phase !== 'leaving')
  if (situation.stopping) return present.map(({ id }) => ({ do: 'drain', id }))
  const workers = present.filter((member) => member.role === 'worker')
  const standIn = present.find((member) => member.role === 'standIn')
  const fresh = workers.filter((member) => member.fresh)
  const serving = workers.filter((member) => member.phase === 'ready')
  const steps: Step[] = []

  const starting = workers.some((member) => member.phase === 'starting')
  if (!starting && fresh.length < situation.wanted && situation.mayStart) steps.push({ do: 'start', role: 'worker' })

  const stale = serving.filter((member) => !member.fresh)
  const surplus = Math.max(0, serving.length - situation.wanted)
  for (const { id } of stale.slice(0, surplus)) steps.push({ do: 'drain', id })

  if (serving.length > 0 && standIn) steps.push({ do: 'drain', id: standIn.id })
  if (serving.length === 0 && !standIn && situation.mayStandIn) steps.push({ do: 'start', role: 'standIn' })
  return steps
}
