import type { Engine } from '../../engine.ts'
import type { Route, Routes } from '../../route.ts'
import { createAuthority } from './authority/authorities.ts'
import { foldDefault } from './authority/authority.ts'
import type { PkiContext } from './context.ts'
import { keysOfManaged } from './keys/keyrows.ts'
import { readAcme } from './routes/config/acme.ts'
import { readCluster, writeCluster } from './routes/config/cluster.ts'
import { readCrlConfig, writeCrlConfig } from './routes/config/crl.ts'
import { readIssuersConfig, replaceRoot, writeIssuersConfig } from './routes/config/issuers.ts'
import { readKeysConfig, writeKeysConfig } from './routes/config/keys.ts'
import { readUrls, writeUrls } from './routes/config/urls.ts'
import { issueByIssuer, issueCertificate } from './routes/issue/issue.ts'
import { signByIssuer, signCertificate } from './routes/issue/sign.ts'
import { signIntermediate, signIntermediateByIssuer } from './routes/issue/signintermediate.ts'
import { signSelfIssued, signSelfIssuedByIssuer } from './routes/issue/signselfissued.ts'
import {
  signVerbatim,
  signVerbatimByIssuer,
  signVerbatimByIssuerAndRole,
  signVerbatimByRole,
} from './routes/issue/signverbatim.ts'
import { crossSign, generateIntermediate, generateIntermediateIssuer } from './routes/issuers/generateintermediate.ts'
import { generateRoot, generateRootIssuer, rotateRoot } from './routes/issuers/generateroot.ts'
import { importCertificates, importIssuers, setSigned, writeCa } from './routes/issuers/import.ts'
import { deleteIssuer, deleteRoot, patchIssuer, readIssuer, writeIssuer } from './routes/issuers/issuer.ts'
import { listIssuers } from './routes/issuers/list.ts'
import { generateKey } from './routes/keys/generate.ts'
import { importKey } from './routes/keys/import.ts'
import { deleteKey, readKey, renameKey } from './routes/keys/key.ts'
import { listKeys } from './routes/keys/list.ts'
import { resignCrls } from './routes/lists/resigncrls.ts'
import { signRevocationList } from './routes/lists/signrevocationlist.ts'
import { listRoutes } from './routes/lists/table.ts'
import { getOcsp, getUnifiedOcsp, postOcsp, postUnifiedOcsp } from './routes/ocsp/ocsp.ts'
import {
  readCa,
  readCaChain,
  readCaChainData,
  readCaData,
  readCaPem,
  readCaRaw,
  readCaRawPem,
  readIssuerData,
  readIssuerDer,
  readIssuerPem,
} from './routes/read/authority.ts'
import { readCertificateData, readCertificateDer, readCertificatePem } from './routes/read/certificate.ts'
import { listCertificates, listDetailedCertificates } from './routes/read/list.ts'
import { revokeIssuerByReference } from './routes/revocation/issuer.ts'
import { listRevocationQueue, listRevoked, listUnifiedRevoked } from './routes/revocation/list.ts'
import { revokeCertificate, revokeWithKey } from './routes/revocation/revoke.ts'
import { explainRole } from './routes/roles/explain.ts'
import { listRoles } from './routes/roles/list.ts'
import { deleteRole, patchRole, readRole, writeRole } from './routes/roles/role.ts'
import { readAutoTidy, writeAutoTidy } from './routes/tidy/autotidy.ts'
import { cancelTidy, readTidyStatus, tidyMount } from './routes/tidy/tidy.ts'
import { createServices, type PkiOptions } from './services.ts'

/** Every route below a PKI mount. */
export const table = {
  'POST issue/:role': issueCertificate,
  'POST issuer/:issuer_ref/issue/:role': issueByIssuer,
  'POST sign/:role': signCertificate,
  'POST issuer/:issuer_ref/sign/:role': signByIssuer,
  'POST sign-verbatim': signVerbatim,
  'POST sign-verbatim/:role': signVerbatimByRole,
  'POST issuer/:issuer_ref/sign-verbatim': signVerbatimByIssuer,
  'POST issuer/:issuer_ref/sign-verbatim/:role': signVerbatimByIssuerAndRole,
  'POST root/sign-intermediate': signIntermediate,
  'POST issuer/:issuer_ref/sign-intermediate': signIntermediateByIssuer,
  'POST root/sign-self-issued': signSelfIssued,
  'POST issuer/:issuer_ref/sign-self-issued': signSelfIssuedByIssuer,

  'GET ca': readCa,
  'GET ca/pem': readCaPem,
  'GET ca_chain': readCaChain,
  'GET cert/ca': readCaData,
  'GET cert/ca/raw': readCaRaw,
  'GET cert/ca/raw/pem': readCaRawPem,
  'GET cert/ca_chain': readCaChainData,
  'GET cert/:serial': readCertificateData,
  'GET cert/:serial/raw': readCertificateDer,
  'GET cert/:serial/raw/pem': readCertificatePem,
  'LIST certs': listCertificates,
  'LIST certs/detailed': listDetailedCertificates,

  'LIST issuers': listIssuers,
  'GET issuer/:issuer_ref': readIssuer,
  'POST issuer/:issuer_ref': writeIssuer,
  'PATCH issuer/:issuer_ref': patchIssuer,
  'DELETE issuer/:issuer_ref': deleteIssuer,
  'GET issuer/:issuer_ref/json': readIssuerData,
  'GET issuer/:issuer_ref/der': readIssuerDer,
  'GET issuer/:issuer_ref/pem': readIssuerPem,
  'POST root/generate/:type': generateRoot,
  'POST issuers/generate/root/:type': generateRootIssuer,
  'POST root/rotate/:type': rotateRoot,
  'POST intermediate/generate/:type': generateIntermediate,
  'POST issuers/generate/intermediate/:type': generateIntermediateIssuer,
  'POST intermediate/cross-sign': crossSign,
  'POST config/ca': writeCa,
  'POST issuers/import/bundle': importIssuers,
  'POST issuers/import/cert': importCertificates,
  'POST intermediate/set-signed': setSigned,
  'DELETE root': deleteRoot,

  'LIST keys': listKeys,
  'POST keys/generate/:type': generateKey,
  'POST keys/import': importKey,
  'GET key/:key_ref': readKey,
  'POST key/:key_ref': renameKey,
  'DELETE key/:key_ref': deleteKey,

  'LIST roles': listRoles,
  'GET roles/:name': readRole,
  'POST roles/:name': writeRole,
  'PATCH roles/:name': patchRole,
  'DELETE roles/:name': deleteRole,
  'POST roles/:name/explain': explainRole,

  'GET config/urls': readUrls,
  'POST config/urls': writeUrls,
  'GET config/issuers': readIssuersConfig,
  'POST config/issuers': writeIssuersConfig,
  'POST root/replace': replaceRoot,
  'GET config/keys': readKeysConfig,
  'POST config/keys': writeKeysConfig,
  'GET config/cluster': readCluster,
  'POST config/cluster': writeCluster,
  'GET config/acme': readAcme,

  'POST issuer/:issuer_ref/resign-crls': resignCrls,
  'POST issuer/:issuer_ref/sign-revocation-list': signRevocationList,

  'POST ocsp': postOcsp,
  'GET ocsp/:request**': getOcsp,
  'POST unified-ocsp': postUnifiedOcsp,
  'GET unified-ocsp/:request**': getUnifiedOcsp,

  'POST tidy': tidyMount,
  'GET tidy-status': readTidyStatus,
  'POST tidy-cancel': cancelTidy,
  'GET config/auto-tidy': readAutoTidy,
  'POST config/auto-tidy': writeAutoTidy,

  'POST revoke': revokeCertificate,
  'POST revoke-with-key': revokeWithKey,
  'POST issuer/:issuer_ref/revoke': revokeIssuerByReference,
  'LIST certs/revoked': listRevoked,
  'LIST certs/unified-revoked': listUnifiedRevoked,
  'LIST certs/revocation-queue': listRevocationQueue,

  'GET config/crl': readCrlConfig,
  'POST config/crl': writeCrlConfig,
  ...listRoutes,
} satisfies Readonly<Record<string, Route<PkiContext>>>

export const routes: Routes<PkiContext> = Object.values(table)

/** Only the word `default` is folded: names of issuers and keys stay as given. */
const folds = { 'issuer/:issuer_ref': foldDefault, 'key/:key_ref': foldDefault }

/** The certificate authority. */
export function createPki(options: PkiOptions): Engine<PkiContext> {
  const { database, clock } = options
  const { context, jobs, removal, listHealth } = createServices(options)
  const { authorities, roles, revoker } = context
  return {
    type: 'pki',
    routes,
    folds,
    context,
    jobs,
    health: () => listHealth.summary(),
    pristine: async (mount) => (await authorities.of(mount)).settings.rev === 1 && (await roles.empty(mount)),
    onMount: (mount, tx) => createAuthority({ database, clock }, tx, mount.uuid),
    removeSome: (mount, claim) => removal.removeSome(mount, claim),
    revokeLease: (mount, payload) => revoker.byLease(mount, payload),
    managedKeyUses: (q, managedKey, mounts, most) => keysOfManaged(database, q, { managedKey, mounts, most }),
  }
}
