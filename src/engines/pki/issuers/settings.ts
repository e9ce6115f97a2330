import { signatureAlgorithmOf, signatureAlgorithms } from '../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../errors.ts'
import type { Changes } from '../../../store/table.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { signsLists, usagesOfNew } from '../authority/issuerrows.ts'
import { checkName } from '../authority/names.ts'
import { issuerOf } from '../authority/references.ts'
import {
  type IssuerRow,
  type IssuerUsage,
  type issuersTable,
  issuerUsages,
  type LeafBehavior,
  leafBehaviors,
} from '../authority/tables.ts'
import { changeUrls, hasUrls, noUrls, type UrlFields } from '../authority/urls.ts'
import { checkManualChain } from './manualchain.ts'

/** The fields of an update; absent ones stay unchanged. */
export interface IssuerFields extends UrlFields {
  readonly issuer_name?: string | undefined
  readonly leaf_not_after_behavior?: string | undefined
  /** Null is the default of the issuer. */
  readonly usage?: readonly string[] | null | undefined
  readonly manual_chain?: readonly string[] | undefined
  readonly revocation_signature_algorithm?: string | undefined
  readonly enable_aia_url_templating?: boolean | undefined
}

/** The fields of a POST: absent ones return to their defaults. */
export const wholeUpdate = (fields: IssuerFields): IssuerFields => ({
  issuer_name: fields.issuer_name ?? '',
  leaf_not_after_behavior: fields.leaf_not_after_behavior ?? 'err',
  usage: fields.usage ?? null,
  manual_chain: fields.manual_chain ?? [],
  revocation_signature_algorithm: fields.revocation_signature_algorithm ?? '',
  issuing_certificates: fields.issuing_certificates ?? [],
  crl_distribution_points: fields.crl_distribution_points ?? [],
  ocsp_servers: fields.ocsp_servers ?? [],
  enable_aia_url_templating: fields.enable_aia_url_templating ?? false,
})

/**
 * The columns that an update changes.
 * @throws ApiError 400 naming the field or the rule
 */
export function issuerChanges(
  authority: Authority,
  issuer: Issuer,
  fields: IssuerFields,
): Changes<typeof issuersTable> {
  const { issuer_name: name, leaf_not_after_behavior: behavior, usage, manual_chain: chain } = fields
  const algorithm = fields.revocation_signature_algorithm
  return {
    ...(name === undefined ? {} : { name: nameOf(authority, issuer, name) }),
    ...(behavior === undefined ? {} : { leafNotAfterBehavior: behaviorOf(behavior) }),
    ...(usage === undefined ? {} : { usages: usagesOf(issuer, usage) }),
    ...(chain === undefined ? {} : { manualChain: manualChainOf(authority, issuer, chain) }),
    ...(algorithm === undefined ? {} : { revocationSignatureAlgorithm: algorithmOf(issuer, algorithm) }),
    ...urlChanges(issuer.row, fields),
  }
}

function nameOf(authority: Authority, { row }: Issuer, name: string): string | null {
  if (name === '') return null
  const other = authority.issuerNamed(name)
  checkName('issuer', name, other !== undefined && other.row.id !== row.id)
  return name
}

function behaviorOf(behavior: string): LeafBehavior {
  const known = leafBehaviors.find((one) => one === behavior)
  if (known !== undefined) return known
  throw badRequest(
    `Unknown value for field \`leaf_not_after_behavior\`: ${behavior}. Possible values are \`err\`, \`truncate\`, and \`permit\`.`,
  )
}

/** Reading is always among them. */
function usagesOf(issuer: Issuer, names: readonly string[] | null): readonly IssuerUsage[] {
  const { row, certificate } = issuer
  if (names === null) return usagesOfNew(certificate, row.revokedAt)
  const wanted = new Set(names.map((name) => name.trim()).filter((name) => name !== ''))
  const unknown = [...wanted].filter((name) => !issuerUsages.some((usage) => usage === name))
  if (unknown.length > 0) {
    throw badRequest(
      `Unable to parse specified usages: [${unknown.join(' ')}] - valid values are ${issuerUsages.join(',')}`,
    )
  }
  if (wanted.has('crl-signing') && !signsLists(certificate)) {
    throw badRequest(
      "This issuer's underlying certificate lacks the CRLSign KeyUsage value; unable to set CRLSigningUsage on this issuer as a result.",
    )
  }
  if (wanted.has('issuing-certificates') && row.revokedAt !== null) {
    throw badRequest(
      'This issuer was revoked; unable to modify its usage to include certificate signing again. Reissue this certificate (preferably with a new key) and modify that entry instead.',
    )
  }
  return issuerUsages.filter((usage) => usage === 'read-only' || wanted.has(usage))
}

function manualChainOf(authority: Authority, issuer: Issuer, references: readonly string[]): readonly string[] | null {
  const named = references.map((reference) => reference.trim()).filter((reference) => reference !== '')
  if (named.length === 0) return null
  const chain = named.map((reference, index) =>
    index === 0 && reference === 'self' ? issuer : issuerOf(authority, reference),
  )
  checkManualChain(issuer, chain)
  return chain.map(({ row }) => row.id)
}

/** The names of signature algorithms by their lower-case spelling: clients may write them in any case. */
const spellings = new Map([...signatureAlgorithms.keys()].map((name) => [name.toLowerCase(), name]))

const families = { rsa: 'RSA', 'rsa-pss': 'RSA', ec: 'ECDSA', ed25519: 'Ed25519' } as const

function algorithmOf({ certificate }: Issuer, wanted: string): string {
  if (wanted === '') return ''
  const name = spellings.get(wanted.toLowerCase()) ?? ''
  const known = signatureAlgorithms.get(name)
  if (known === undefined) {
    throw badRequest(
      `Unknown signature algorithm value: ${wanted} - valid values are ${[...signatureAlgorithms.keys()].join(', ')}`,
    )
  }
  const type = certificate.publicKey().asymmetricKeyType as keyof typeof families
  if (families[type]?.toLowerCase() !== signatureAlgorithmOf(known.name).family) {
    throw badRequest(`unable to use issuer of type ${families[type] ?? type} to sign with ${name} key type`)
  }
  return name
}

function urlChanges(row: IssuerRow, fields: IssuerFields): Changes<typeof issuersTable> {
  const given = [fields.issuing_certificates, fields.crl_distribution_points, fields.ocsp_servers]
  if (given.every((list) => list === undefined) && fields.enable_aia_url_templating === undefined) return {}
  const urls = changeUrls(row.aia ?? noUrls, fields, fields.enable_aia_url_templating)
  return { aia: hasUrls(urls) || urls.templating ? urls : null }
}
