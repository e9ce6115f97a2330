import { answered, asking } from '../attribute.ts'
import { Failure, type Fate } from '../faults.ts'
import type { Arguments, Operation, Result } from '../session/operations.ts'
import { type Dialect, type KeyTemplate, spell, spellPair } from '../template.ts'

/** Runs an operation on the token under test; fails with Failure. */
export type Run = <N extends Operation>(name: N, ...args: Arguments<N>) => Promise<Result<N>>

/** The workbench of probes: makes objects, and clears them away. */
export interface Bench {
  readonly run: Run
  /** The token's dialect of templates as far as known; probes fill it in. */
  dialect: Dialect
  generate(mechanism: number, template: KeyTemplate): Promise<Buffer>
  generatePair(mechanism: number, open: KeyTemplate, hidden: KeyTemplate): Promise<{ open: Buffer; hidden: Buffer }>
  create(template: KeyTemplate): Promise<Buffer>
  unwrap(kek: Buffer, mechanism: number, blob: Uint8Array, template: KeyTemplate): Promise<Buffer>
  /** Destroys the objects made since the last call. */
  clear(): Promise<void>
}

/**
 * A workbench without objects. Its dialect is that of a token without peculiarities until a probe finds another. What
 * it makes fails with Failure where the token refuses; `unwrap` throws CarelessToken.
 */
export function createBench(run: Run): Bench {
  const made: Buffer[] = []
  const remember = (object: Buffer): Buffer => {
    made.push(object)
    return object
  }
  return {
    run,
    dialect: { modifiableOnUnwrap: true, copyableOnToken: true, pointOnUnwrap: false },
    async generate(mechanism, template) {
      return remember(await run('generateKey', mechanism, spell(template, 'generate', this.dialect)))
    },
    async generatePair(mechanism, open, hidden) {
      const pair = await run('generateKeyPair', mechanism, ...spellPair(open, hidden, this.dialect))
      return { open: remember(pair.publicKey), hidden: remember(pair.privateKey) }
    },
    async create(template) {
      return remember(await run('create', spell(template, 'create', this.dialect)))
    },
    async unwrap(kek, mechanism, blob, template) {
      const key = remember(await run('unwrap', kek, { type: mechanism }, blob, spell(template, 'unwrap', this.dialect)))
      const { sensitive, extractable } = answered(guards, await run('attributes', key, asking(guards)))
      const { sensitive: hidden = true, extractable: leaves = false } = template
      if (sensitive !== hidden || extractable !== leaves) throw new CarelessToken()
      return key
    },
    async clear() {
      for (const object of made.splice(0)) await run('destroy', object)
    },
  }
}

const guards = ['sensitive', 'extractable'] as const

/** The token does not unwrap keys with the attributes requested: no key in it would be safe. */
class CarelessToken extends Error {
  constructor() {
    super('the token does not keep a key that it unwraps sensitive and not extractable, as it is told to')
  }
}

const unanswered = new Set<Fate>(['lost', 'session', 'retry'])

/**
 * A probe's finding, or undefined when the token refuses or gives something that node:crypto cannot read: both are
 * answers.
 * @throws Failure when there is no answer because the token is gone or short of resources; CarelessToken
 */
export async function answer<T>(probe: () => Promise<T>): Promise<T | undefined> {
  try {
    return await probe()
  } catch (error) {
    if (error instanceof CarelessToken || (error instanceof Failure && unanswered.has(error.fate))) throw error
    return undefined
  }
}

/** The first candidate with which the probe succeeds. */
export async function firstOf<T>(candidates: readonly T[], probe: (candidate: T) => Promise<boolean>) {
  for (const candidate of candidates) if (await answer(() => probe(candidate))) return candidate
  return undefined
}
