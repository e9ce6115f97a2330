import { type Static, Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, commaList, integer, text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { type CrlSettings, defaultCrlSettings } from '../../crl/settings.ts'
import { noFields } from '../../input/page.ts'
import {
  adviceOn,
  type CrlFields,
  changeCrlSettings,
  crlSettingsOf,
  formerShardsOf,
  needsRebuild,
} from '../../publication/settings.ts'
import { wasSpread } from '../../publication/shardsets.ts'

const crlConfig = data(
  Type.Object({
    expiry: Type.String(),
    disable: Type.Boolean(),
    ocsp_disable: Type.Boolean(),
    ocsp_expiry: Type.String(),
    auto_rebuild: Type.Boolean(),
    auto_rebuild_grace_period: Type.String(),
    enable_delta: Type.Boolean(),
    delta_rebuild_interval: Type.String(),
    allow_expired_cert_revocation: Type.Boolean(),
    cross_cluster_revocation: Type.Boolean(),
    unified_crl: Type.Boolean(),
    unified_crl_on_existing_paths: Type.Boolean(),
    crl_shards: Type.Integer(),
    crl_former_shards: Type.Array(Type.Integer()),
  }),
)

const describe = (settings: CrlSettings): Data => ({
  expiry: settings.expiry,
  disable: settings.disable,
  ocsp_disable: settings.ocspDisable,
  ocsp_expiry: settings.ocspExpiry,
  auto_rebuild: settings.autoRebuild,
  auto_rebuild_grace_period: settings.autoRebuildGracePeriod,
  enable_delta: settings.enableDelta,
  delta_rebuild_interval: settings.deltaRebuildInterval,
  allow_expired_cert_revocation: settings.allowExpiredCertRevocation,
  cross_cluster_revocation: settings.crossClusterRevocation,
  unified_crl: settings.unifiedCrl,
  unified_crl_on_existing_paths: settings.unifiedCrlOnExistingPaths,
  crl_shards: settings.shards,
  crl_former_shards: formerShardsOf(settings),
})

export const readCrlConfig = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'config/crl',
  access: 'token',
  about: 'The settings of revocation lists and OCSP answers.',
  body: noFields,
  answers: crlConfig,
  run: async ({ context, mount }) => describe(crlSettingsOf(await context.authorities.of(mount))),
})

const body = Type.Object({
  expiry: text({ about: 'Validity of a list; 72h at first.', initial: '72h' }),
  disable: boolean({ about: 'Whether lists are left empty and revocations are only stored.', initial: false }),
  ocsp_disable: boolean({ about: 'Whether OCSP answers every request with unauthorized.', initial: false }),
  ocsp_expiry: text({ about: 'Validity of an OCSP answer; 12h at first, 0 for no end.', initial: '12h' }),
  auto_rebuild: boolean({
    about: 'Whether lists are rebuilt before they expire instead of at each revocation.',
    initial: false,
  }),
  auto_rebuild_grace_period: text({
    about: 'Time before the end of a list at which it is rebuilt; below expiry.',
    initial: '12h',
  }),
  enable_delta: boolean({ about: 'Whether delta lists are built in between; needs auto_rebuild.', initial: false }),
  delta_rebuild_interval: text({
    about: 'Interval at which delta lists are built if anything was revoked; below expiry.',
    initial: '15m',
  }),
  allow_expired_cert_revocation: boolean({ about: 'Whether expired certificates are revoked too.', initial: false }),
  cross_cluster_revocation: boolean({
    about: 'Whether other sites are asked to revoke certificates unknown to this one.',
    initial: false,
  }),
  unified_crl: boolean({ about: 'Whether there are lists over all sites; needs auto_rebuild.', initial: false }),
  unified_crl_on_existing_paths: boolean({
    about: 'Whether all paths serve the lists over all sites.',
    initial: false,
  }),
  crl_shards: integer({
    about: 'Number of shards: lists that each cover some new certificates, besides the complete list; 0 for no shards.',
    initial: 0,
  }),
  crl_former_shards: commaList({
    about: 'Earlier values of crl_shards whose lists are still built; those of other earlier values end.',
  }),
})

type WriteCall = Call<PkiContext, typeof body>

const fieldsOf = (given: Static<typeof body>): CrlFields => ({
  expiry: given.expiry,
  disable: given.disable,
  ocspDisable: given.ocsp_disable,
  ocspExpiry: given.ocsp_expiry,
  autoRebuild: given.auto_rebuild,
  autoRebuildGracePeriod: given.auto_rebuild_grace_period,
  enableDelta: given.enable_delta,
  deltaRebuildInterval: given.delta_rebuild_interval,
  allowExpiredCertRevocation: given.allow_expired_cert_revocation,
  crossClusterRevocation: given.cross_cluster_revocation,
  unifiedCrl: given.unified_crl,
  unifiedCrlOnExistingPaths: given.unified_crl_on_existing_paths,
  shards: given.crl_shards,
  formerShards: given.crl_former_shards?.filter((text) => text.trim() !== '').map(readCount),
})

/** @throws ApiError 400 */
function readCount(text: string): number {
  if (/^\s*\d{1,3}\s*$/.test(text)) return Number(text)
  throw badRequest(`crl_former_shards must be a list of numbers, got: ${text}`)
}

const noShardUrl =
  'no crl_distribution_points of config/urls or of an issuer contains {{shard}}: certificates name no shard, and no shards are built'

/** When it is answered the new lists are published, or a warning gives the reason why not. */
async function write({ context, mount, body, warn }: WriteCall): Promise<Data> {
  const { authority, result: before } = await context.authorities.change(mount, async (_tx, { settings }) => {
    const before = settings.crl ?? defaultCrlSettings
    return { settings: { crl: changeCrlSettings(before, fieldsOf(body), context.clock.wall()) }, result: before }
  })
  const after = crlSettingsOf(authority)
  for (const advice of adviceOn(after)) warn(advice)
  if (needsRebuild(before, after)) for (const warning of await context.crls.rebuild(mount)) warn(warning)
  if (after.shards > 0 && !wasSpread(authority, after.shards)) warn(noShardUrl)
  return describe(after)
}

export const writeCrlConfig = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'config/crl',
  access: 'token',
  about: 'Changes the settings of revocation lists and OCSP answers; absent fields stay unchanged.',
  body,
  answers: crlConfig,
  run: write,
})
