import type { Authority } from '../authority/authority.ts'
import type { Kind, Scope } from '../crl/tables.ts'
import type { BuildTarget, ShardSet } from '../crl/target.ts'
import { crlSignatureName } from '../issuing/signature.ts'
import type { Signers } from '../keys/signers.ts'
import type { CrlGroup } from './groups.ts'
import { crlSettingsOf, millisecondsOf } from './settings.ts'

/** Which list of a group to build. */
export interface ListOrder {
  /** A complete one comes with its delta. */
  readonly kinds: Kind
  readonly scope: Scope
  readonly covering?: BuildTarget['covering']
  /** Whether shards without new entries stay as they are. */
  readonly lacking?: boolean
}

/** @param group has a signer @throws ApiError 400 for a key that is gone or signs nothing */
export async function targetOf(
  authority: Authority,
  { crlIssuer, signer: issuer }: CrlGroup,
  order: ListOrder,
  signers: Pick<Signers, 'of'>,
  shards: readonly ShardSet[],
): Promise<BuildTarget> {
  const key = issuer && authority.keyOf(issuer)
  if (issuer === undefined || key === undefined) throw new Error('a list without a signer is not built')
  const { expiry, disable } = crlSettingsOf(authority)
  const signer = await signers.of(key, issuer.certificate)
  return {
    ...order,
    mount: authority.settings.mount,
    crlIssuer,
    signer,
    algorithm: crlSignatureName(issuer.row, signer),
    certificate: issuer.certificate,
    expiryMilliseconds: millisecondsOf(expiry),
    disabled: disable,
    shards,
  }
}
