import type { Data, MaybePromise, Outcome } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { type BatchCall, type BatchRules, runInputs } from '../input/batch.ts'
import type { Inputs } from '../input/items.ts'
import type { Ring } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'
import { type NamedRing, withRing } from '../ring/withring.ts'

/** One cryptographic operation with a key. */
export interface Operation {
  readonly context: TransitContext
  readonly ring: Ring
  /** The caller may not learn the plaintext: a cipher whose refusals tell about it is refused. */
  readonly blind?: boolean
  warn(text: string): void
}

/** An operation with one version of the key. */
export interface VersionOperation extends Operation {
  readonly version: Version
}

interface OperationCall extends NamedRing, BatchCall {
  readonly context: TransitContext
}

interface OperationRules extends BatchRules {
  /** The refusal when the key does not exist. */
  readonly missing: string
}

/** Runs an operation with the key named in the path, on the single input or on each item of the batch. */
export function runOperation<I extends { readonly reference?: string | undefined }>(
  call: OperationCall,
  inputs: Inputs<I>,
  rules: OperationRules,
  work: (operation: Operation, input: I) => MaybePromise<Data>,
): MaybePromise<Outcome> {
  const { context } = call
  return withRing(call, rules.missing, (ring) =>
    runInputs(call, inputs, rules, (input, warn) => work({ context, ring, warn }, input)),
  )
}
