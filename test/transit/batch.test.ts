import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runInputs } from '../../src/engines/transit/input/batch.ts'
import { ApiError, badRequest, unavailable } from '../../src/errors.ts'
import type { Data, MaybePromise } from '../../src/route.ts'

interface Input {
  readonly reference?: string
  readonly does: 'answers' | 'answers later' | 'refuses' | 'refuses later' | 'fails' | 'fails later'
}

function work({ does }: Input): MaybePromise<Data> {
  const outcome = (): Data => {
    if (does.startsWith('refuses')) throw badRequest('no')
    if (does.startsWith('fails')) throw new TypeError('a bug')
    return { ok: true }
  }
  return does.endsWith('later') ? setImmediate().then(outcome) : outcome()
}

const run = (items: readonly Input[], body = {}) =>
  runInputs({ body, warn: () => undefined }, { batch: true, items }, { partialStatus: 200 }, work)
const settled = async (items: readonly Input[]) => {
  try {
    return await run(items)
  } catch (error) {
    return error
  }
}

describe('a batch', () => {
  test('has one result per item in their order, however late some of them come', async () => {
    const kinds = ['answers', 'answers later', 'refuses', 'refuses later'] as const
    const item = fc.record({ does: fc.constantFrom(...kinds), reference: fc.string() })
    await fc.assert(
      fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 400 }), async (items) => {
        const outcome = await settled(items)
        const data = outcome instanceof ApiError ? outcome.data : outcome
        expect(data).toEqual({
          batch_results: items.map(({ does, reference }) =>
            does.startsWith('answers') ? { ok: true, reference } : { error: 'no', reference },
          ),
        })
        expect(outcome instanceof ApiError).toBe(items.every(({ does }) => does.startsWith('refuses')))
      }),
      { numRuns: 40 },
    )
  })

  test('in which nothing waits is answered without a promise', () => {
    expect(run([{ does: 'answers' }, { does: 'refuses' }])).toEqual({
      batch_results: [
        { ok: true, reference: '' },
        { error: 'no', reference: '' },
      ],
    })
  })

  test('of thousands lets others run in between', async () => {
    let turns = 0
    let over = false
    const count = async () => {
      for (; !over; turns++) await setImmediate()
    }
    const counting = count()
    await run(Array(2000).fill({ does: 'answers' }))
    over = true
    await counting
    expect(turns).toBeGreaterThan(5)
  })
})

describe('a fault of ours', () => {
  test.each([
    [['answers', 'fails']],
    [['answers', 'fails later']],
    [['refuses', 'fails', 'refuses later']],
    [['fails later', 'fails', 'fails later']],
  ] as const)('fails the whole batch, and none of its neighbours is left unawaited: %j', async (kinds) => {
    const stray: unknown[] = []
    const note = (error: unknown) => void stray.push(error)
    process.on('unhandledRejection', note)
    await expect(Promise.resolve(settled(kinds.map((does) => ({ does }))))).resolves.toBeInstanceOf(TypeError)
    for (let turn = 0; turn < 5; turn++) await setImmediate()
    process.off('unhandledRejection', note)
    expect(stray).toEqual([])
  })

  test('fails by an absent token with 503, and no result', async () => {
    const lost = () =>
      runInputs({ body: {}, warn: () => undefined }, { batch: true, items: [{}] }, { partialStatus: 400 }, () => {
        throw unavailable('the token is away')
      })
    await expect((async () => lost())()).rejects.toMatchObject({ status: 503, data: undefined })
  })
})
