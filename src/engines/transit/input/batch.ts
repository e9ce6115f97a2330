import { type TProperties, Type } from 'typebox'
import { after, nextTurn } from '../../../after.ts'
import { type Answers, data } from '../../../answers.ts'
import { ApiError } from '../../../errors.ts'
import { Answer, type Data, type MaybePromise, type Outcome } from '../../../route.ts'
import type { Inputs } from './items.ts'

type Warn = (text: string) => void

/** The answers of one operation to a batch with failed items. */
export interface BatchRules {
  /** The status when some items failed and the request does not give one. */
  readonly partialStatus: 200 | 400
  /** Fields of a failed item besides `error` and `reference`. */
  readonly failedItem?: Data
}

/**
 * The answers of runInputs. A failed item has only its error, its reference and the fields of `failedItem`.
 * @param result the members of the result for one input
 */
export function resultOrBatch(result: TProperties): Answers {
  const item = Type.Object({
    ...Type.Partial(Type.Object(result)).properties,
    error: Type.Optional(Type.String()),
    reference: Type.String(),
  })
  const batch = Type.Object({ batch_results: Type.Array(item) })
  return [...data(Type.Union([Type.Object(result), batch])), ...data(batch, '2XX')]
}

/** A call with a single input or a batch. */
export interface BatchCall {
  readonly body: { readonly partial_failure_response_code?: number }
  warn: Warn
}

/**
 * Runs `work` on the single input and returns its result, or on each item of a batch and returns `batch_results` in the
 * same order. A refused item never affects its neighbours.
 * @throws ApiError of `work`; for a batch one that carries the results, when its status is 4xx or 5xx. A server fault
 *   fails the whole request
 */
export function runInputs<I extends { readonly reference?: string | undefined }>(
  { body, warn }: BatchCall,
  { batch, items }: Inputs<I>,
  rules: BatchRules,
  work: (input: I, warn: Warn) => MaybePromise<Data>,
): MaybePromise<Outcome> {
  const [only] = items
  if (!batch && only !== undefined) return work(only, warn)
  // A set: a warning shared by a thousand items is given once.
  const warnings = new Set<string>()
  const override = body.partial_failure_response_code
  return after(
    runItems(items, (item) => work(item, (text) => warnings.add(text))),
    (results) => {
      const batchResults = results.map((result, index) => shownResult(result, items[index]?.reference ?? '', rules))
      const status = statusOf(results, rules.partialStatus, override, (text) => warnings.add(text))
      const data = { batch_results: batchResults }
      for (const text of warnings) warn(text)
      if (status >= 400) throw new ApiError(status, summary(results), { data })
      return status === 200 ? data : new Answer({ status, data })
    },
  )
}

/** The data of an item, or its refusal. */
type Result = Data | ApiError

const failed = (result: Result): result is ApiError => result instanceof ApiError

const shownResult = (result: Result, reference: string, { failedItem }: BatchRules): Data =>
  failed(result) ? { ...failedItem, error: result.messages.join('; '), reference } : { ...result, reference }

/** The text of `errors`, the only part of a 4xx that clients keep. */
function summary(results: readonly Result[]): string {
  const first = results.findIndex(failed)
  const text = results.find(failed)?.message ?? ''
  return `${results.filter(failed).length} of ${results.length} batch items failed; item ${first}: ${text}`
}

function statusOf(results: readonly Result[], partial: number, override: number | undefined, warn: Warn): number {
  if (!results.some(failed)) return 200
  if (results.every(failed)) return 400
  if (override === undefined) return partial
  // 204, 205 and 304 have no body.
  if (override >= 200 && override <= 599 && ![204, 205, 304].includes(override)) return override
  warn('invalid HTTP response code override from partial_failure_response_code, reverting to 400')
  return 400
}

/** Items per turn of the event loop, so that a batch of thousands starves no other request. */
const itemsPerTurn = 128

/** @returns one result for each item; rejects when one of them met a server fault */
function runItems<I>(items: readonly I[], work: (item: I) => MaybePromise<Data>): MaybePromise<readonly Result[]> {
  const results: Result[] = []
  const from = (start: number): MaybePromise<readonly Result[]> => {
    const end = Math.min(items.length, start + itemsPerTurn)
    const pending: Promise<unknown>[] = []
    for (let index = start; index < end; index++) {
      const result = runItem(items[index] as I, work)
      if (result instanceof Promise) pending.push(result.then((value) => (results[index] = value)))
      else results[index] = result
    }
    const turn = pending.length > 0 ? Promise.all(pending) : undefined
    if (end === items.length) return after<unknown, readonly Result[]>(turn, () => results)
    return Promise.resolve(turn)
      .then(nextTurn)
      .then(() => from(end))
  }
  return from(0)
}

/**
 * A refusal is the item's result. A fault rejects the promise, even if `work` throws: otherwise its neighbours would
 * never be awaited.
 */
function runItem<I>(item: I, work: (item: I) => MaybePromise<Data>): MaybePromise<Result> {
  try {
    const result = work(item)
    return result instanceof Promise ? result.catch(refusal) : result
  } catch (error) {
    return error instanceof ApiError && error.status < 500 ? error : Promise.reject(error)
  }
}

function refusal(error: unknown): ApiError {
  if (error instanceof ApiError && error.status < 500) return error
  throw error
}
