import { expect, test } from 'vitest'
import { completeOf, deltaOf } from '../../../src/engines/pki/crl/content.ts'
import type { Manifest } from '../../../src/engines/pki/crl/manifests.ts'

const manifest: Manifest = {
  ...{ crlIssuer: 'ca', rev: 1, published: {} },
  sites: {
    a: {
      absorbed: 30,
      segments: [
        { id: 'one', first: 1, last: 10, count: 10, bytes: 100 },
        { id: 'two', first: 11, last: 20, count: 10, bytes: 200, superseded: [12] },
        { id: 'three', first: 21, last: 30, count: 10, bytes: 400, elsewhere: [22] },
      ],
    },
    b: { absorbed: 5, segments: [{ id: 'four', first: 1, last: 5, count: 5, bytes: 800 }] },
  },
}

const measuredOf = ({ bytes, unmeasured }: ReturnType<typeof completeOf>) => [
  bytes,
  unmeasured.map(({ segment }) => segment),
]

test('only segments of which a list leaves entries out are read for its length', () => {
  expect(measuredOf(completeOf(manifest, ['a']))).toEqual([500, ['two']])
  expect(measuredOf(completeOf(manifest, ['a', 'b']))).toEqual([900, ['two', 'three']])
  expect(measuredOf(deltaOf(manifest, ['a'], { a: 20 }))).toEqual([400, []])
  expect(measuredOf(deltaOf(manifest, ['a'], { a: 5 }))).toEqual([400, ['one', 'two']])
  expect(measuredOf(deltaOf(manifest, ['a'], { a: 30 }))).toEqual([0, []])
})
