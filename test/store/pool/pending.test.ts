import { expect, test } from 'vitest'
import { Conflict, DuplicateRow, Failure, Outdated } from '../../../src/store/faults.ts'
import { PendingWrites } from '../../../src/store/pool/pending.ts'

const failure = (errno: number, done?: number) => new Failure(Object.assign(new Error('no'), { errno }), done)

test('rows of equal columns are one INSERT, as long as nothing but INSERTs has come between', () => {
  const writes = new PendingWrites()
  writes.insert('a', 'INSERT INTO a (x) VALUES', '(1)')
  writes.insert('b', 'INSERT INTO b (x) VALUES', '(2)')
  writes.insert('a', 'INSERT INTO a (x) VALUES', '(3)')
  writes.insert('a', 'INSERT INTO a (y) VALUES', '(4)')
  writes.add('a', 'DELETE FROM a')
  writes.insert('a', 'INSERT INTO a (x) VALUES', '(5)')
  expect(writes.take().statements).toEqual([
    'INSERT INTO a (x) VALUES (1), (3)',
    'INSERT INTO b (x) VALUES (2)',
    'INSERT INTO a (y) VALUES (4)',
    'DELETE FROM a',
    'INSERT INTO a (x) VALUES (5)',
  ])
  expect([writes.none, writes.take().statements]).toEqual([true, []])
})

test('an error is that of the statement that failed', () => {
  const writes = new PendingWrites()
  writes.add('a', 'UPDATE a', () => new Conflict())
  writes.add('b', 'UPDATE b', () => new Outdated())
  writes.insert('c', 'INSERT INTO c (x) VALUES', '(1)')
  const { statements, explain } = writes.take()
  expect(statements).toHaveLength(5)
  // A query that fails at its first row counts as answered; in a cluster it may not.
  for (const done of [1, 2]) expect(explain(failure(1242, done))).toBeInstanceOf(Conflict)
  for (const done of [3, 4]) expect(explain(failure(1242, done))).toBeInstanceOf(Outdated)
  expect(explain(failure(1062, 4))).toMatchObject({ name: 'DuplicateRow', table: 'c' })
  expect(explain(failure(1062, 4))).toBeInstanceOf(DuplicateRow)
  for (const other of [failure(1213, 4), failure(1242), failure(1205, 0), new Error('no'), failure(1062, 9)]) {
    expect(explain(other)).toBe(other)
  }
})

test('assumed rows are locked and compared first, without waiting, by their ids', () => {
  const writes = new PendingWrites()
  writes.assume('a', { id: 'id1', rev: 4 })
  writes.assume('a', { id: 'id2', rev: 1 })
  writes.assume('b', { id: 'id3', rev: 7 })
  // Of two changes of one row the second would match nothing.
  expect(() => writes.assume('b', { id: 'id3', rev: 7 })).toThrow(Outdated)
  writes.add('a', 'UPDATE a', () => new Conflict())
  const { statements, explain } = writes.take()
  const failing = '(SELECT 1 UNION SELECT 2)) AS asserted'
  expect(statements.slice(0, 3)).toEqual([
    `SELECT IF(SUM(rev = CASE id WHEN 'id1' THEN 4 WHEN 'id2' THEN 1 END) = 2, 1, ${failing} FROM \`a\` FORCE INDEX (PRIMARY) WHERE id IN ('id1', 'id2') FOR UPDATE NOWAIT`,
    `SELECT IF(SUM(rev = CASE id WHEN 'id3' THEN 7 END) = 1, 1, ${failing} FROM \`b\` FORCE INDEX (PRIMARY) WHERE id IN ('id3') FOR UPDATE NOWAIT`,
    'UPDATE a',
  ])
  for (const done of [0, 1]) expect(explain(failure(1242, done))).toBeInstanceOf(Outdated)
  for (const done of [3, 4]) expect(explain(failure(1242, done))).toBeInstanceOf(Conflict)
  // Who waits for a row is told by its number alone.
  for (const number of [1205, 3572]) expect(explain(failure(number, 1))).not.toBeInstanceOf(Outdated)
  expect(writes.take().statements).toEqual([])
})
