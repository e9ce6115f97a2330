import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MountEdit } from '../../../src/request/mounts/edit.ts'
import type { MountRow } from '../../../src/request/mounts/mount.ts'
import type { SetState } from '../../../src/store/sealed/knownset.ts'
import { SortedList } from '../../../src/store/sortedlist.ts'

const rowOf = (id: string, path: string): MountRow => ({
  ...{ id, path, namespace: '', mount: '', rev: 1, epoch: 1, type: 'transit', description: '', accessor: id },
  ...{ config: {} as MountRow['config'], options: null, local: false, sealWrap: false, touched: true, createdAt: 0 },
})

const stateOf = (rows: readonly MountRow[]): SetState<MountRow> => ({
  head: {} as SetState<MountRow>['head'],
  members: SortedList.of(
    ({ id }) => id,
    rows.map((value) => ({ id: value.id, rev: value.rev, contents: '', value })),
  ),
  values: SortedList.of(({ path }) => path, rows),
})

const paths = ['a/', 'b/', 'c/', 'd/', 'e/']
const path = fc.constantFrom(...paths)
const step = fc.oneof(
  fc.record({ kind: fc.constant('insert' as const), path }),
  fc.record({ kind: fc.constant('describe' as const), path, text: fc.constantFrom('x', 'y') }),
  fc.record({ kind: fc.constant('move' as const), path, to: path }),
  fc.record({ kind: fc.constant('remove' as const), path }),
)

test('changes that share a transaction leave behind what one after the other would, or none is made', () => {
  let [made, refused] = [0, 0]
  fc.assert(
    fc.property(fc.subarray(paths), fc.array(step, { maxLength: 12 }), (there, steps) => {
      const stored = there.map((one) => rowOf(`stored ${one}`, one))
      const edit = new MountEdit(stateOf(stored))
      const model = new Map(stored.map((row) => [row.path, row]))
      const given = new Map<string, string>()
      let expected = 'made'
      let actual = 'made'
      for (const [n, one] of steps.entries()) {
        const old = model.get(one.path)
        const target = one.kind === 'move' ? one.to : one.path
        if (one.kind === 'insert' ? old : !old || (one.kind === 'move' && target !== one.path && model.get(target)))
          continue
        const id = old?.id ?? `new ${n}`
        if (one.kind !== 'remove' && target !== old?.path && (given.get(target) ?? id) !== id) expected = 'refused'
        try {
          const row = edit.byPath.get(one.path)
          if (one.kind === 'insert') edit.insert(rowOf(id, one.path))
          else if (row === undefined) throw new TypeError('the edit lacks the row')
          else if (one.kind === 'describe') edit.update(row, { description: one.text })
          else if (one.kind === 'move') edit.update(row, { path: one.to })
          else edit.remove(row, () => undefined)
        } catch (error) {
          if (error instanceof TypeError) throw error
          actual = 'refused'
        }
        if (expected === 'refused') break
        if (old && (one.kind === 'remove' || target !== old.path)) {
          model.delete(old.path)
          given.set(old.path, id)
        }
        const row = old ?? rowOf(id, one.path)
        const text = one.kind === 'describe' ? { description: one.text } : {}
        if (one.kind !== 'remove') model.set(target, { ...row, ...text, path: target })
      }
      expect(actual).toBe(expected)
      if (expected === 'refused') return void refused++
      made++
      const seen = (row: MountRow) => [row.id, row.path, row.description]
      expect([...edit.byPath].map(seen)).toEqual(
        [...model.values()].sort((a, b) => (a.path < b.path ? -1 : 1)).map(seen),
      )
      // What is to be written turns the stored rows into just these.
      const rows = new Map(stored.map((row) => [row.id, row]))
      for (const { stored: old, row, changes } of edit.edited) {
        if (row === undefined) rows.delete(old?.id ?? '')
        else rows.set(row.id, old ? { ...old, ...changes } : (changes as MountRow))
      }
      expect([...rows.values()].map(seen).sort()).toEqual([...model.values()].map(seen).sort())
    }),
    { numRuns: 500 },
  )
  expect(made).toBeGreaterThan(50)
  expect(refused).toBeGreaterThan(20)
})
