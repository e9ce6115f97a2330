import { type TSchema, Type } from 'typebox'
import { keyInfo, keyList, strings } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { pageFields } from '../../input/page.ts'
import { mostSerials, serialPage, shownSerial, warnOfMore } from '../../input/serialpage.ts'
import type { RevocationPage } from '../../revocation/listing.ts'

type ListCall = Call<PkiContext, typeof pageFields>

/** An entry that is listed by its serial number. */
interface Listed {
  readonly serial: string
}

function listRoute<T extends Listed>(
  path: string,
  about: string,
  read: (call: ListCall, page: RevocationPage) => Promise<readonly T[]>,
  shown?: { readonly info: TSchema; describe(one: T): Data },
): Route<PkiContext, typeof pageFields> {
  return route<PkiContext, typeof pageFields>({
    method: 'LIST',
    path,
    access: 'token',
    about,
    body: pageFields,
    answers: shown === undefined ? keyList : keyInfo(shown.info),
    async run(call) {
      const found = await read(call, serialPage(call.body))
      if (found.length === 0) throw absent()
      const listed = found.slice(0, mostSerials)
      const keys = listed.map(({ serial }) => shownSerial(serial))
      if (listed.length < found.length) warnOfMore(keys, call.warn)
      if (shown === undefined) return { keys }
      return { keys, key_info: Object.fromEntries(listed.map((one, index) => [keys[index], shown.describe(one)])) }
    },
  })
}

export const listRevoked = listRoute(
  'certs/revoked',
  'The serial numbers of the certificates that this site has revoked.',
  async ({ context, mount }, page) =>
    (await context.revocationLists.revoked(mount.uuid, page)).map((serial) => ({ serial })),
)

export const listUnifiedRevoked = listRoute(
  'certs/unified-revoked',
  'The serial numbers of revoked certificates of all sites, with the site that revoked each.',
  ({ context, mount }, page) => context.revocationLists.unified(mount.uuid, page),
  {
    info: Type.Object({ revoking_clusters: strings }),
    describe: ({ site }) => ({ revoking_clusters: [site] }),
  },
)

export const listRevocationQueue = listRoute(
  'certs/revocation-queue',
  'The serial numbers that sites ask each other to revoke.',
  ({ context, mount }, page) => context.revocationLists.requests(mount.uuid, page),
  {
    info: Type.Union([
      Type.Object({ requesting_cluster: Type.String() }),
      Type.Object({ confirmed: Type.Boolean(), confirmation_cluster: Type.String() }),
    ]),
    describe: ({ site, confirmedBy }) =>
      confirmedBy === null ? { requesting_cluster: site } : { confirmed: true, confirmation_cluster: confirmedBy },
  },
)
