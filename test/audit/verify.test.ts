import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Chain, type ChainHead } from '../../src/audit/chain.ts'
import { type SealedHead, Verification } from '../../src/audit/verify.ts'

const names = (incarnation: string) => ({ node: 'n', device: 'd', incarnation, epoch: 1 })

/** Links records as a file without prefix holds them. */
function link(chain: Chain, records: readonly string[]): { lines: string[]; heads: ChainHead[] } {
  const { bytes, heads } = chain.link(
    records.map((record) => [record.slice(0, -1)]),
    { start: '', prefix: '' },
  )
  return { lines: bytes.toString().split('\n').slice(0, -1), heads }
}

/** Chains of these lengths, mixed in one file, with their sealed heads. */
function written(...lengths: readonly number[]): { lines: string[]; heads: SealedHead[] } {
  const chains = lengths.map((length, index) => {
    const chain = new Chain(names(`i${index}`))
    const heads: ChainHead[] = []
    const lines = Array.from({ length }, (_, line) => {
      const linked = link(chain, [JSON.stringify({ time: '2026-11-21T10:00:00.000Z', type: 'request', line })])
      for (const head of linked.heads) {
        chain.commit(head)
        heads.push(head)
      }
      return linked.lines.join()
    })
    return { lines, head: { incarnation: `i${index}`, node: 'n', updatedAt: 1000, ...chain.head } }
  })
  const longest = Math.max(...lengths)
  const lines = Array.from({ length: longest }, (_, at) => chains.flatMap(({ lines: own }) => own.slice(at, at + 1)))
  return { lines: lines.flat(), heads: chains.map(({ head }) => head) }
}

async function read(lines: readonly string[], heads: readonly SealedHead[]): Promise<Verification> {
  const verification = new Verification(async () => heads)
  for (const [index, line] of lines.entries()) await verification.line(line, `f:${index + 1}`)
  return verification
}

const verify = async (lines: readonly string[], heads: readonly SealedHead[], from?: number): Promise<string[]> =>
  (await read(lines, heads)).problems(from)

test('chains of several workers in one file are unbroken', async () => {
  const { lines, heads } = written(5, 3, 1)
  expect(await verify(lines, heads)).toEqual([])
  expect(await verify(['', ...lines, ''], heads)).toEqual([])
  expect(
    await verify(
      lines.map((line) => `prefix ${line}`),
      heads,
    ),
  ).toEqual([])
})

test('whatever is done to a line, to its place, or to the end of the file is noticed', async () => {
  const { lines, heads } = written(6, 4)
  const at = fc.integer({ min: 0, max: lines.length - 1 })
  await fc.assert(
    fc.asyncProperty(
      at,
      at,
      fc.constantFrom('edit', 'remove', 'swap', 'repeat', 'cut', 'behead'),
      async (a, b, deed) => {
        const forged = [...lines]
        const line = forged[a] ?? ''
        if (deed === 'edit') forged[a] = line.replace('"type":"request"', '"type":"respons"')
        if (deed === 'remove') forged.splice(a, 1)
        if (deed === 'repeat') forged.splice(b, 0, line)
        if (deed === 'cut') forged.length = a
        if (deed === 'behead') forged.splice(0, a + 1)
        if (deed === 'swap') {
          forged[a] = forged[b] ?? ''
          forged[b] = line
        }
        const chainOf = (text: string) => /"incarnation":"i(\d)"/.exec(text)?.[1]
        const order = (texts: readonly string[]) =>
          [0, 1].map((n) => texts.filter((text) => chainOf(text) === String(n)))
        // Lines of different chains may change places: only the order within a chain matters.
        fc.pre(JSON.stringify(order(forged)) !== JSON.stringify(order(lines)))
        expect(await verify(forged, heads)).not.toEqual([])
      },
    ),
    { numRuns: 300 },
  )
})

test('a chain that somebody wrote anew, hashes and all, does not meet its sealed head', async () => {
  const { heads } = written(4)
  const chain = new Chain(names('i0'))
  const forged = link(
    chain,
    Array.from({ length: 9 }, (_, line) => JSON.stringify({ time: 'x', type: 'request', line })),
  )
  expect(await verify(forged.lines, heads)).toEqual(['f:4: is not line 4 of chain i0 as it was sealed'])
  // Leaving the sealed line out, as if the device had not taken it, does not help either.
  const other = new Chain(names('i0'))
  const before = link(other, [record(1), record(2), record(3)])
  for (const head of before.heads) other.commit(head)
  link(other, [record(4)])
  const after = link(other, [record(5)])
  expect(await verify([...before.lines, ...after.lines], heads)).toEqual([expect.stringContaining('lacks its line 4')])
})

const record = (line: number) => JSON.stringify({ time: 'x', type: 'request', line })

test('a chain that is missing as a whole, or that nobody sealed, is noticed', async () => {
  const { lines, heads } = written(3, 3)
  const own = lines.filter((line) => line.includes('"i0"'))
  expect(await verify(own, heads)).toEqual([expect.stringContaining('chain i1 of n is missing')])
  expect(await verify(own, heads, 1001)).toEqual([])
  expect(await verify(own, heads, 1000)).toHaveLength(1)
  expect(await verify(lines, heads.slice(0, 1))).toEqual([expect.stringContaining('no sealed head: it may be forged')])
  expect(await verify([], heads)).toEqual(['there is no audit line'])
  // Another node writes to a file of its own.
  expect(
    await verify(
      own,
      heads.map((head, index) => ({ ...head, node: `n${index || ''}` })),
    ),
  ).toEqual([])
  expect(await verify([...lines, '{"time":"x","type":"request"}'], heads)).toEqual(['f:7: has no chain field'])
})

test('what a device could not take is told and is no damage; a torn piece neither, nor a line that follows on it', async () => {
  const chain = new Chain(names('i0'))
  const first = link(chain, [record(1)])
  for (const head of first.heads) chain.commit(head)
  link(chain, [record(2), record(3)])
  const last = link(chain, [record(4)])
  for (const head of last.heads) chain.commit(head)
  const heads = [{ incarnation: 'i0', node: 'n', updatedAt: 0, ...chain.head }]
  const verification = new Verification(async () => heads)
  const torn = '{"time":"x","type":"req'
  for (const line of [...first.lines, torn, `${torn}${last.lines}`]) await verification.line(line, 'f')
  expect(verification.problems()).toEqual([])
  expect(verification.torn).toBe(1)
  expect([...verification.chains.values()]).toMatchObject([{ lines: 2, dropped: 2 }])
})

test('a chain without a sealed head is no problem, and named, once heads of its time are gone', async () => {
  const { lines, heads } = written(3, 2)
  const verification = await read(lines, heads.slice(1))
  const [at, later] = [Date.parse('2026-11-21T10:00:00.000Z'), Date.parse('2026-11-21T10:00:00.001Z')]
  expect(verification.problems(0, at)).toEqual([expect.stringContaining('no sealed head')])
  expect(verification.unsealed(at)).toEqual([])
  expect(verification.problems(0, later)).toEqual([])
  expect(verification.unsealed(later)).toMatchObject([{ names: { incarnation: 'i0' }, lines: 3 }])
  const cut = await read(lines.slice(0, -1), heads)
  expect(cut.problems(0, later)).toEqual([expect.stringContaining('lacks its line 3')])
  const broken = await read(lines.toSpliced(2, 1), heads.slice(1))
  expect(broken.problems(0, later)).toEqual([expect.stringContaining('does not follow')])
})

test('a break where a file begins is told from one within a file', async () => {
  const chain = new Chain(names('i0'))
  const rotation = (event: string) => JSON.stringify({ time: 'x', type: 'rotation', rotation: { event } })
  const records = [record(1), rotation('closed'), rotation('opened'), record(2)]
  const { lines } = link(chain, records)
  const heads = [{ incarnation: 'i0', node: 'n', updatedAt: 0, ...chain.head }]
  const without = (...taken: readonly number[]) =>
    verify(
      lines.filter((_, line) => !taken.includes(line)),
      heads.map((head) => ({ ...head, sequence: 0 })),
    )
  const [cut, changed] = ['the file before was cut or swapped', 'a line was changed, moved, added or taken out']
  expect(await without()).toEqual([])
  expect(await without(1)).toEqual([expect.stringContaining(`does not follow on line 1 of chain i0: ${cut}`)])
  expect(await without(2)).toEqual([expect.stringContaining(`does not follow on line 2 of chain i0: ${changed}`)])
})

test.each([null, 'opened', {}, { event: 1 }])('a rotation of %j says nothing about files', async (rotation) => {
  const { lines, heads } = written(2)
  const [odd = ''] = link(new Chain(names('i0')), [JSON.stringify({ time: 'x', rotation })]).lines
  expect(await verify([...lines, odd], heads)).toEqual([expect.stringContaining('a line was changed, moved, added')])
})
