import { describe, expect, test } from 'vitest'
import { Conflict, DuplicateRow, Failure, Outdated } from '../../../src/store/faults.ts'
import { textOf } from '../../../src/store/pool/literal.ts'
import { largestPending, PendingWrites, type Round } from '../../../src/store/pool/pending.ts'

const failure = (errno: number, done?: number) => new Failure(Object.assign(new Error('no'), { errno }), done)
const conflict = () => new Conflict()
const names = ['rev', 'x']
const row = (id: string, rev: number, x = '0') => ({ id, rev, values: [String(rev + 1), x] })

const textsOf = ({ statements }: Round): string[] => statements.map(textOf)
const wordsOf = (round: Round, words: number): string[] =>
  textsOf(round).map((text) => text.split(' ').slice(0, words).join(' '))

describe('rows of one table', () => {
  test('of equal columns are one INSERT', () => {
    const writes = new PendingWrites()
    writes.insert('a', 'INSERT INTO a (x) VALUES', ['1'])
    writes.insert('b', 'INSERT INTO b (x) VALUES', ['2'])
    writes.insert('a', 'INSERT INTO a (x) VALUES', ['3'])
    writes.insert('a', 'INSERT INTO a (y) VALUES', ['4'])
    writes.add('a', 'DELETE FROM a')
    writes.insert('a', 'INSERT INTO a (x) VALUES', ['5'])
    expect(textsOf(writes.take())).toEqual([
      'INSERT INTO a (x) VALUES (1), (3)',
      'INSERT INTO b (x) VALUES (2)',
      'INSERT INTO a (y) VALUES (4)',
      'DELETE FROM a',
      'INSERT INTO a (x) VALUES (5)',
    ])
    expect([writes.none, writes.take().statements]).toEqual([true, []])
  })

  test('are one UPDATE where they are held, with each row its own values', () => {
    const writes = new PendingWrites()
    for (const [id, rev, x] of [['i', 6, '1'] as const, ['j', 8, '1'] as const]) {
      writes.update('a', names, row(id, rev, x))
      writes.insert('b', 'INSERT INTO b (x) VALUES', [x])
    }
    expect(textsOf(writes.take())).toEqual([
      "UPDATE `a` FORCE INDEX (PRIMARY) SET `rev` = CASE id WHEN 'i' THEN 7 WHEN 'j' THEN 9 END, `x` = 1 WHERE id IN ('i', 'j') AND rev = CASE id WHEN 'i' THEN 6 WHEN 'j' THEN 8 END",
      'INSERT INTO b (x) VALUES (1), (1)',
    ])
  })

  test('are one DELETE where they are held', () => {
    const writes = new PendingWrites()
    for (const id of ['i', 'j']) writes.remove('a', { id, rev: 2 })
    writes.remove('b', { id: 'i', rev: 1 })
    expect(textsOf(writes.take())).toEqual([
      "DELETE `a` FROM `a` FORCE INDEX (PRIMARY) WHERE id IN ('i', 'j') AND rev = CASE id WHEN 'i' THEN 2 WHEN 'j' THEN 2 END",
      "DELETE `b` FROM `b` FORCE INDEX (PRIMARY) WHERE id = 'i' AND rev = 1",
    ])
  })

  test('keep their order where one is changed twice, made and changed, or replaced by another', () => {
    const writes = new PendingWrites()
    const into = 'INSERT INTO a (x) VALUES'
    writes.update('a', names, row('i', 1))
    writes.update('a', names, row('i', 2))
    writes.insert('a', into, ['1'])
    writes.update('a', names, row('j', 1))
    writes.remove('a', { id: 'i', rev: 3 })
    writes.insert('a', into, ['2'])
    writes.remove('a', { id: 'k', rev: 1 })
    const words = textsOf(writes.take()).map((sql) => `${sql.split(' ')[0]} ${/'(.)'|\((\d)\)/.exec(sql)?.[0]}`)
    expect(words).toEqual([
      "UPDATE 'i'",
      "UPDATE 'i'",
      'INSERT (1)',
      "UPDATE 'j'",
      "DELETE 'i'",
      'INSERT (2)',
      "DELETE 'k'",
    ])
  })

  test('are not more than 64 in a statement, and of other columns another one', () => {
    const writes = new PendingWrites()
    for (let n = 0; n < 65; n++) writes.update('a', names, row(`r${n}`, 1))
    writes.update('a', [...names], row('other', 1))
    const rows = textsOf(writes.take()).map((sql) => new Set(sql.match(/'\w+'/g)).size)
    expect(rows).toEqual([64, 1, 1])
  })

  test('that others may have changed are compared one by one, and nothing passes them', () => {
    const writes = new PendingWrites()
    writes.update('a', names, row('i', 1), conflict)
    writes.update('a', names, row('j', 1), conflict)
    writes.update('a', names, row('k', 1))
    writes.remove('b', { id: 'l', rev: 1 }, conflict)
    writes.insert('c', 'INSERT INTO c (x) VALUES', ['1'])
    const kinds = wordsOf(writes.take(), 1)
    expect(kinds).toEqual(['UPDATE', 'SELECT', 'UPDATE', 'SELECT', 'UPDATE', 'DELETE', 'SELECT', 'INSERT'])
  })
})

test('many small changes are sent before their text is too long', () => {
  const [changing, removing] = [new PendingWrites(), new PendingWrites()]
  const id = '01a21d23-5893-749b-b371-7a44406a4808'
  let changes = 0
  for (; !changing.full && changes < 50_000; changes++) changing.update('a', names, row(`${id}${changes}`, 1))
  let removals = 0
  for (; !removing.full && removals < 50_000; removals++) removing.remove('a', { id: `${id}${removals}`, rev: 1 })
  expect([changing.full, removing.full]).toEqual([true, true])
  for (const round of [changing.take(), removing.take()]) {
    const { length } = textsOf(round).join('; ')
    expect(length).toBeGreaterThan(largestPending / 4)
    expect(length).toBeLessThan(largestPending * 1.1)
  }
})

test('an error is that of the statement that failed', () => {
  const writes = new PendingWrites()
  writes.update('a', names, row('i', 1), conflict)
  writes.update('b', names, row('i', 1), () => new Outdated())
  writes.insert('c', 'INSERT INTO c (x) VALUES', ['1'])
  const { statements, explain } = writes.take()
  expect(statements).toHaveLength(5)
  // A query that fails at its first row counts as answered; in a cluster it may not.
  for (const done of [1, 2]) expect(explain(failure(1690, done))).toBeInstanceOf(Conflict)
  for (const done of [3, 4]) expect(explain(failure(1690, done))).toBeInstanceOf(Outdated)
  expect(explain(failure(1062, 4))).toMatchObject({ name: 'DuplicateRow', table: 'c' })
  expect(explain(failure(1062, 4))).toBeInstanceOf(DuplicateRow)
  for (const other of [failure(1213, 4), failure(1690), failure(1205, 0), new Error('no'), failure(1062, 9)]) {
    expect(explain(other)).toBe(other)
  }
})

describe('assumed rows', () => {
  const hurried = (sql: string) => `hurried ${sql}`

  test('are locked and compared first, without waiting, by their ids', () => {
    const writes = new PendingWrites()
    writes.assume('a', { id: 'id1', rev: 4 })
    writes.assume('a', { id: 'id2', rev: 1 })
    writes.assume('b', { id: 'id3', rev: 7 })
    // Of two changes of one row the second would match nothing.
    expect(() => writes.assume('b', { id: 'id3', rev: 7 })).toThrow(Outdated)
    writes.update('a', names, row('id1', 4), conflict)
    const round = writes.take(hurried)
    const { explain, matching } = round
    const texts = textsOf(round)
    const failing = '~0 + 1) AS asserted'
    expect(texts.slice(0, 2)).toEqual([
      `hurried SELECT IF(SUM(rev = CASE id WHEN 'id1' THEN 4 WHEN 'id2' THEN 1 END) = 2, 1, ${failing} FROM \`a\` FORCE INDEX (PRIMARY) WHERE id IN ('id1', 'id2') FOR UPDATE`,
      `hurried SELECT IF(SUM(rev = CASE id WHEN 'id3' THEN 7 END) = 1, 1, ${failing} FROM \`b\` FORCE INDEX (PRIMARY) WHERE id IN ('id3') FOR UPDATE`,
    ])
    expect(texts[2]).toMatch(/^UPDATE `a`/)
    expect(matching).toBeUndefined()
    for (const done of [0, 1]) expect(explain(failure(1690, done))).toBeInstanceOf(Outdated)
    for (const done of [3, 4]) expect(explain(failure(1690, done))).toBeInstanceOf(Conflict)
    // Who waits for a row is told by its number alone.
    for (const number of [1205, 3572]) expect(explain(failure(number, 1))).not.toBeInstanceOf(Outdated)
    expect(textsOf(writes.take())).toEqual([])
  })

  test('are locked by a statement that can recur with other values if they are one or two, otherwise by a text', () => {
    const kinds = [1, 2, 3].map((count) => {
      const round = assuming(...['i', 'j', 'k'].slice(0, count)).take(hurried)
      return typeof round.statements[0]
    })
    expect(kinds).toEqual(['object', 'object', 'string'])
  })

  const assuming = (...ids: readonly string[]) => {
    const writes = new PendingWrites()
    for (const id of ids) writes.assume('a', { id, rev: 1 })
    return writes
  }

  test('that one statement changes need no other: it does not wait, and tells how many must match', () => {
    const [changing, removing] = [assuming('i', 'j'), assuming('i')]
    for (const id of ['i', 'j']) changing.update('a', names, row(id, 1))
    removing.remove('a', { id: 'i', rev: 1 })
    const [changed, removed] = [changing.take(hurried), removing.take(hurried)]
    expect([wordsOf(changed, 2), changed.matching]).toEqual([['hurried UPDATE'], 2])
    expect([wordsOf(removed, 2), removed.matching]).toEqual([['hurried DELETE'], 1])
  })

  const others: readonly (readonly [string, (writes: PendingWrites) => void])[] = [
    ['another row is changed', (writes) => writes.update('a', names, row('j', 1))],
    ['another row is assumed', (writes) => writes.assume('a', { id: 'j', rev: 1 })],
    ['a row of another table is assumed', (writes) => writes.assume('b', { id: 'j', rev: 1 })],
    ['something else is written', (writes) => writes.insert('b', 'INSERT INTO b (x) VALUES', ['1'])],
  ]
  test.each(others)('are locked first where %s', (_, other) => {
    const writes = assuming('i')
    writes.update('a', names, row('i', 1))
    other(writes)
    const round = writes.take(hurried)
    expect([wordsOf(round, 2)[0], round.matching]).toEqual(['hurried SELECT', undefined])
  })

  test('are locked first where the change is of another rev, is none, or cannot be hurried', () => {
    const [wrong, none, slow] = [assuming('i'), assuming('i'), assuming('i')]
    wrong.update('a', names, row('i', 2))
    slow.update('a', names, row('i', 1))
    const rounds = [wrong.take(hurried), none.take(hurried), slow.take()]
    expect(rounds.map((round) => wordsOf(round, 2)[0])).toEqual([
      'hurried SELECT',
      'hurried SELECT',
      'SELECT IF(SUM(rev',
    ])
    for (const round of rounds) expect(round.matching).toBeUndefined()
    expect(textsOf(slow.take())).toEqual([])
  })
})
