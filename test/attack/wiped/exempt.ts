import { at } from './work.ts'

/** Routes that no work names, by the reason. */
const reasons: Readonly<Record<string, readonly string[]>> = {
  'only names, settings and public halves pass it': [
    ...at('transit', 'LIST keys', 'GET keys/:name', 'GET wrapping_key', 'GET config/keys', 'POST config/keys'),
    ...at('transit', 'GET cache-config', 'POST cache-config', 'POST keys/:name/set-certificate'),
    ...at('pki', 'POST roles/:name', 'POST roles/:name/explain', 'POST issuer/:issuer_ref', 'POST key/:key_ref'),
    ...at(
      'pki',
      'POST config/urls',
      'POST config/issuers',
      'POST config/keys',
      'POST config/cluster',
      'POST config/crl',
    ),
    ...at('pki', 'POST config/auto-tidy', 'POST root/replace', 'POST tidy', 'POST tidy-cancel'),
    ...at('pki', 'POST intermediate/set-signed'),
    ...at('sys', 'LIST managed-keys/:type', 'GET managed-keys/:type/:name'),
  ],
  'the input of a hash is an input, which is not wiped': [
    ...at('transit', 'POST hash', 'POST hash/:algorithm'),
    ...at('sys', 'POST tools/hash', 'POST tools/hash/:algorithm'),
  ],
  'it marks or removes rows': [
    ...at('transit', 'DELETE keys/:name', 'DELETE keys/:name/soft-delete', 'POST keys/:name/soft-delete-restore'),
    ...at('transit', 'POST keys/:name/trim'),
    ...at('sys', 'DELETE managed-keys/:type/:name'),
  ],
  'its key signs in its own token and cannot be known': at('sys', 'POST managed-keys/:type/:name/test/sign'),
  'it refuses private keys': at('pki', 'POST issuers/import/cert'),
  'it signs with the key of the authority, as sign/:role does': at(
    'pki',
    ...['POST issuer/:issuer_ref/sign/:role', 'POST sign-verbatim/:role', 'POST issuer/:issuer_ref/sign-verbatim'],
    ...['POST issuer/:issuer_ref/sign-verbatim/:role', 'POST root/sign-intermediate', 'POST root/sign-self-issued'],
    ...['POST issuer/:issuer_ref/sign-self-issued', 'POST intermediate/cross-sign'],
  ),
  'it signs lists and answers with the key of the authority, as crl/rotate does': at(
    'pki',
    ...['POST issuer/:issuer_ref/resign-crls', 'POST issuer/:issuer_ref/sign-revocation-list', 'POST ocsp'],
    ...['POST unified-ocsp', 'POST revoke', 'POST issuer/:issuer_ref/revoke'],
  ),
}

export const exempt: ReadonlySet<string> = new Set(Object.values(reasons).flat())
