/** A window counts as cheaper from here on, as a share of the cheapest one before it. */
const cheaper = 0.99
/** So many windows in a row that are no cheaper end it. */
const patience = 5
const mostWindows = 40

/** Of one window. */
export const windowSeconds = 2

/**
 * Warms one side of a comparison until its cost has stopped falling: V8 goes on compiling a server's code for half a
 * minute and longer, and the fewer requests it gets the longer that takes.
 * @param cost of a window of requests, in whatever unit
 */
export async function warm(cost: () => Promise<number>): Promise<void> {
  let cheapest = Number.POSITIVE_INFINITY
  let inVain = 0
  for (let windows = 0; windows < mostWindows && inVain < patience; windows++) {
    const found = await cost()
    inVain = found < cheaper * cheapest ? 0 : inVain + 1
    cheapest = Math.min(cheapest, found)
  }
}
