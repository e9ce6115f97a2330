import type { Config } from '../config.ts'

/** When a worker counts as lost, and when the next one is started. All times are monotonic milliseconds. */
export interface Timing {
  /** Silence of the event loop after which a worker is killed. */
  readonly silenceMilliseconds: number
  /** The same until it is ready: loading a module with many objects is one long call. */
  readonly startMilliseconds: number
  /** From the order to drain to the kill. */
  readonly drainMilliseconds: number
  readonly rssLimitBytes: number
  /** A worker younger than this is not replaced for its size: a limit set too low must not turn into a loop. */
  readonly settleMilliseconds: number
  readonly tickMilliseconds: number
}

const defaultTiming = {
  silenceMilliseconds: 5000,
  startMilliseconds: 60_000,
  settleMilliseconds: 60_000,
  tickMilliseconds: 500,
} as const

/** After its deadline a worker cuts off its clients, and then has this long to release token and database. */
const farewellMilliseconds = 5000

/** The timing of a configuration. */
export const timingOf = ({ drainSeconds, workerMemoryMebibytes }: Config['limits']): Timing => ({
  ...defaultTiming,
  drainMilliseconds: drainSeconds * 1000 + farewellMilliseconds,
  rssLimitBytes: workerMemoryMebibytes * 2 ** 20,
})

export interface Vitals {
  readonly phase: Phase
  readonly phaseSince: number
  readonly lastBeat: number
  readonly rssBytes: number
}

/** The stand-in answers 503 while no worker serves. */
export type Role = 'worker' | 'standIn'

export type Phase = 'starting' | 'ready' | 'leaving'

export type Verdict = 'well' | 'silent' | 'overdue' | 'oversized'

/** `silent` and `overdue` are killed; `oversized` is replaced while it goes on serving. */
export function verdict(vitals: Vitals, now: number, timing: Timing): Verdict {
  const inPhase = now - vitals.phaseSince
  if (vitals.phase === 'starting') return inPhase > timing.startMilliseconds ? 'overdue' : 'well'
  if (vitals.phase === 'leaving' && inPhase > timing.drainMilliseconds) return 'overdue'
  if (now - vitals.lastBeat > timing.silenceMilliseconds) return 'silent'
  const heavy = vitals.rssBytes > timing.rssLimitBytes && inPhase > timing.settleMilliseconds
  return vitals.phase === 'ready' && heavy ? 'oversized' : 'well'
}

/**
 * Whether the supervisor itself was stopped (SIGSTOP, a suspended machine): beats are unread, but no process is late.
 */
export const wasSuspended = (sinceLastTick: number, timing: Timing): boolean =>
  sinceLastTick > 4 * timing.tickMilliseconds

/** The consequences of the deaths so far for the next start. */
export interface Starts {
  /** Whether any worker ever served. */
  readonly served: boolean
  readonly earlyDeaths: number
  readonly notBefore: number
  /** The token refused the PIN: no worker starts until it changes. */
  readonly pinRefused: boolean
  /** The first start failed: the server ends with the reason instead of trying for ever. */
  readonly hopeless: boolean
}

export const noStarts: Starts = { served: false, earlyDeaths: 0, notBefore: 0, pinRefused: false, hopeless: false }

export interface Loss {
  readonly phase: Phase
  readonly phaseSince: number
  /** The reason that the worker itself reported, if any. */
  readonly failure: { readonly kind: 'pin' | 'other' } | undefined
}

/** Unexplained deaths that the first start may have. */
const unexplainedDeathsAtStart = 3
/** A worker that serves for less has died early. */
const earlyMilliseconds = 30_000

/** The state after a loss: early deaths delay the next start, by 200 ms, then twice as long each time, up to 30 s. */
export function afterLoss(starts: Starts, { phase, phaseSince, failure }: Loss, now: number): Starts {
  const early = phase !== 'ready' || now - phaseSince < earlyMilliseconds
  const earlyDeaths = early ? starts.earlyDeaths + 1 : 0
  const wait = earlyDeaths === 0 ? 0 : Math.min(30_000, 100 * 2 ** Math.min(earlyDeaths, 20))
  return {
    served: starts.served,
    earlyDeaths,
    notBefore: now + wait,
    pinRefused: starts.pinRefused || failure?.kind === 'pin',
    hopeless: !starts.served && (failure !== undefined || earlyDeaths >= unexplainedDeathsAtStart),
  }
}
