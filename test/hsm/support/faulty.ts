import { setImmediate as turn } from 'node:timers/promises'
import type { HsmOptions } from '../../../src/hsm/hsm.ts'
import { createShim, type Shim } from './fault.ts'
import { type OpenHsm, openHsm, theToken } from './open.ts'

let made: Promise<Shim> | undefined
/** The test file's fault shim, in front of its token's module. */
export const theShim = (): Promise<Shim> => {
  made ??= theToken().then(({ library }) => createShim(library))
  return made
}

/** An Hsm whose module is the shim. */
export async function openFaulty(options: Partial<HsmOptions> = {}): Promise<OpenHsm & { shim: Shim }> {
  const shim = await theShim()
  shim.clear()
  return { ...(await openHsm({ library: shim.library, ...options })), shim }
}

/** Resolves when something has become true. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    await turn()
  }
}
