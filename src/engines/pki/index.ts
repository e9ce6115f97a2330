import type { Engine } from '../../engine.ts'

/** The certificate authority. It can be mounted, and every path in it answers `unsupported path` until it is built. */
export const createPki = (): Engine<undefined> => ({ type: 'pki', context: undefined, routes: [] })
