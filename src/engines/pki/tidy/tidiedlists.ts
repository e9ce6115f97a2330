import type { Database } from '../../../store/database.ts'
import type { CrlBuilder } from '../crl/builder.ts'
import type { Crls } from '../publication/crls.ts'
import { withdrawLists } from '../publication/withdrawal.ts'
import type { Associations } from '../revocation/associations.ts'
import type { TidiedLists } from './deps.ts'

interface Parts {
  readonly database: Database
  readonly builder: CrlBuilder
  readonly crls: Crls
  readonly associations: Associations
}

/** Revocation lists as tidy changes them. */
export const tidiedLists = ({ database, builder, crls, associations }: Parts): TidiedLists => ({
  absorb: ({ crlIssuer, site }) => builder.absorb(crlIssuer, site),
  async removeEntries({ crlIssuer, site }, end) {
    await builder.absorb(crlIssuer, site)
    return builder.removeEntries(crlIssuer, site, ({ notAfter }) => notAfter * 1000 <= end)
  },
  rebuild: (mount) => crls.rebuild(mount),
  afterDeletion: (mount, gone) => crls.afterDeletion(mount, gone),
  withdraw: (mount, crlIssuer) => withdrawLists({ database, builder }, mount, crlIssuer),
  async associate(mount, signal) {
    let [missing, fixed] = [0, 0]
    for (let after: string | undefined = ''; after !== undefined && !signal.aborted; ) {
      const portion = await associations.some(after, mount)
      fixed += portion.associated.length
      missing += portion.associated.length + portion.missing
      after = portion.last
    }
    return { missing, fixed }
  },
})
