import type { Database } from '../../../store/database.ts'
import type { CrlBuilder } from '../crl/builder.ts'
import { listCacheKey, nameOfKey } from '../crl/list.ts'
import { crlsTable } from '../crl/tables.ts'

/** Removes the lists of a mount whose CRL issuer has no certificate there any more. @param mount uuid */
export async function withdrawLists(
  { database, builder }: { readonly database: Database; readonly builder: Pick<CrlBuilder, 'manifests'> },
  mount: string,
  crlIssuer: string,
): Promise<void> {
  await builder.manifests.change(crlIssuer, async (tx, { published }) => {
    const lists = Object.entries(published)
    const mine = lists.filter(([key]) => key.startsWith(`${mount} `))
    if (mine.length === 0) return { result: undefined }
    await database.table(crlsTable).removeWhere(tx, { mount, crlIssuer })
    for (const [key] of mine) tx.touch(crlsTable.name, listCacheKey(nameOfKey(crlIssuer, key)))
    return { after: { published: Object.fromEntries(lists.filter((list) => !mine.includes(list))) }, result: undefined }
  })
}
