import fc from 'fast-check'
import { expect, test } from 'vitest'
import { builtinRecord, type MountRow } from '../../../src/request/mounts/mount.ts'
import { MountSet } from '../../../src/request/mounts/mountset.ts'
import { mountsByPath } from '../../../src/request/mounts/overlap.ts'
import type { MountState } from '../../../src/request/mounts/rows.ts'
import { SortedList } from '../../../src/store/sortedlist.ts'

const rowOf = (path: string, rev: number): MountRow => ({
  ...{ id: `id of ${path}`, path, namespace: '', mount: '', rev, epoch: 1, type: 'transit', description: '' },
  ...{ accessor: path, config: {} as MountRow['config'], options: null, local: false, sealWrap: false },
  ...{ touched: true, createdAt: 0 },
})

const segments = fc.array(fc.constantFrom('a', 'b', 'sys', 'c'), { minLength: 1, maxLength: 4 })
const builtin = mountsByPath(
  ['sys/', 'auth/token/'].map((path) => builtinRecord({ path, type: 'system', description: '' })),
)

/** By trying every mount. */
const longest = (paths: readonly string[], path: string): string | undefined =>
  paths.filter((mount) => `${path}/`.startsWith(mount)).sort((one, other) => other.length - one.length)[0]

test('a set finds what is mounted, also after changes of the list that it is made of', () => {
  const change = fc.record({ gone: fc.array(segments, { maxLength: 3 }), news: fc.array(segments, { maxLength: 4 }) })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.array(segments), (changes, asked) => {
      const model = new Map<string, MountRow>()
      let state: MountState = {
        head: {} as MountState['head'],
        members: SortedList.of(({ id }) => id),
        values: mountsByPath<MountRow>(),
      }
      const pathOf = (parts: readonly string[]) => `${parts.join('/')}/`
      for (const [n, { gone, news }] of changes.entries()) {
        const left = gone.map(pathOf)
        const rows = [...new Set(news.map(pathOf))].filter((path) => path !== 'sys/').map((path) => rowOf(path, n + 1))
        for (const path of left) model.delete(path)
        for (const row of rows) model.set(row.path, row)
        const ids = left.map((path) => `id of ${path}`)
        const members = rows.map((value) => ({ id: value.id, rev: value.rev, contents: '', value }))
        state = { ...state, members: state.members.changed(ids, members), values: state.values.changed(left, rows) }
        const set = new MountSet(builtin, state)
        const paths = [...model.keys(), 'sys/', 'auth/token/']
        expect(set.list().map(({ path }) => path)).toEqual(paths.toSorted())
        // What is derived from the list is kept by its identity.
        expect(set.list()).toBe(set.list())
        // Twice: the second time it remembers.
        for (const path of [...asked, ...asked].map((parts) => parts.join('/'))) {
          expect(set.lookUp(path)?.path).toBe(longest(paths, path))
          expect(set.at(`${path}/`)?.path).toBe(paths.find((one) => one === `${path}/`))
          expect(set.at(`${path}/`)?.rev).toBe(model.get(`${path}/`)?.rev ?? (path === 'sys' ? 0 : undefined))
          expect(set.has(`id of ${path}/`)).toBe(model.has(`${path}/`))
          expect(set.get(`id of ${path}/`)?.rev).toBe(model.get(`${path}/`)?.rev)
        }
      }
    }),
  )
})
