import type { MaybePromise, Mount } from '../../route.ts'

/** Which uses of a managed key are asked for. */
export interface WantedUses {
  /** Its uuid. */
  readonly managedKey: string
  readonly mounts: readonly Mount[]
  /** Names to return. */
  readonly most: number
}

/**
 * Names the uses of a managed key in some mounts. Rows left over from removed mounts do not count.
 * @param rows that use it, page by page
 * @param nameOf the path of a use below its mount; undefined for a row that no key has
 */
export async function nameUses<R extends { readonly mount: string }>(
  rows: AsyncIterable<readonly R[]>,
  { mounts, most }: WantedUses,
  nameOf: (row: R) => MaybePromise<string | undefined>,
): Promise<string[]> {
  const paths = new Map(mounts.map(({ uuid, path }) => [uuid, path]))
  const uses: string[] = []
  for await (const page of rows) {
    for (const row of page) {
      const path = paths.get(row.mount)
      const name = path === undefined ? undefined : await nameOf(row)
      if (name !== undefined) uses.push(`${path}${name}`)
      if (uses.length >= most) return uses
    }
  }
  return uses
}
