import { type Static, Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { boolean, integer, text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { type CrlSettings, defaultCrlSettings } from '../../crl/settings.ts'
import { noFields } from '../../input/page.ts'
import { type CrlFields, changeCrlSettings, crlSettingsOf, needsRebuild } from '../../publication/settings.ts'

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
})

export const readCrlConfig = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'config/crl',
  access: 'token',
  about: 'How revocation lists and OCSP answers are made.',
  body: noFields,
  run: async ({ context, mount }) => describe(crlSettingsOf(await context.authorities.of(mount))),
})

const body = Type.Object({
  expiry: text({ about: 'How long a list is valid; 72h at first.', initial: '72h' }),
  disable: boolean({ about: 'Whether lists are empty, and revocations only stored.', initial: false }),
  ocsp_disable: boolean({ about: 'Whether OCSP answers unauthorized to everything.', initial: false }),
  ocsp_expiry: text({ about: 'How long an OCSP answer is valid; 12h at first, 0 for no end.', initial: '12h' }),
  auto_rebuild: boolean({
    about: 'Whether lists are rebuilt before they expire instead of at each revocation.',
    initial: false,
  }),
  auto_rebuild_grace_period: text({
    about: 'How long before its end a list is rebuilt; below expiry.',
    initial: '12h',
  }),
  enable_delta: boolean({ about: 'Whether delta lists are built in between; needs auto_rebuild.', initial: false }),
  delta_rebuild_interval: text({
    about: 'How often a delta list is built, if anything was revoked; below expiry.',
    initial: '15m',
  }),
  allow_expired_cert_revocation: boolean({ about: 'Whether expired certificates are revoked too.', initial: false }),
  cross_cluster_revocation: boolean({
    about: 'Whether other sites are asked to revoke what this one does not know.',
    initial: false,
  }),
  unified_crl: boolean({ about: 'Whether there are lists over all sites; needs auto_rebuild.', initial: false }),
  unified_crl_on_existing_paths: boolean({
    about: 'Whether all paths serve the lists over all sites.',
    initial: false,
  }),
  crl_shards: integer({ about: 'Lists that the certificates of an issuer are spread over; 0, for one.', initial: 0 }),
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
})

/** The lists that the change asks for are out when it is answered, or a warning says why not. */
async function write({ context, mount, body, warn }: WriteCall): Promise<Data> {
  if (body.crl_shards) throw badRequest('crl_shards: lists in shards are not built yet; only 0 can be set')
  const { authority, result: before } = await context.authorities.change(mount, async (_tx, { settings }) => {
    const before = settings.crl ?? defaultCrlSettings
    return { settings: { crl: changeCrlSettings(before, fieldsOf(body)) }, result: before }
  })
  const after = crlSettingsOf(authority)
  if (needsRebuild(before, after)) for (const warning of await context.crls.rebuild(mount)) warn(warning)
  return describe(after)
}

export const writeCrlConfig = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'config/crl',
  access: 'token',
  about: 'Sets how revocation lists and OCSP answers are made; what is not given stays.',
  body,
  run: write,
})
