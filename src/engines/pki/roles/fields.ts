import { type TObject, type TSchema, Type } from 'typebox'
import { strings } from '../../../answers.ts'
import { boolean, commaList, duration, integer, raw, text } from '../../../field.ts'
import { readPolicies } from './policies.ts'

/** The most characters of a role in JSON. */
export const mostRoleCharacters = 1_000_000

/** One field of a role: its initial value, its schema in a body, and the conversion of its value. */
interface RoleField<V> {
  readonly initial: V
  readonly schema: TSchema
  /** @param value as the schema converts it @throws ApiError 400 */
  read(value: unknown): V
}

const plain = <V>(value: unknown): V => value as V

const flag = (initial: boolean, about: string): RoleField<boolean> => ({
  initial,
  schema: boolean({ about, initial }),
  read: plain,
})

const seconds = (initial: number, about: string): RoleField<number> => ({
  initial,
  schema: duration({ about, initial }),
  read: plain,
})

const bits = (about: string): RoleField<number> => ({ initial: 0, schema: integer({ about, initial: 0 }), read: plain })

/** Empty means the initial value. */
const word = (initial: string, about: string): RoleField<string> => ({
  initial,
  schema: text({ about, initial }),
  read: (value) => String(value).trim() || initial,
})

/** Without empty entries, which come from superfluous commas. */
const words = (about: string, initial: readonly string[] = []): RoleField<readonly string[]> => ({
  initial,
  // The whole role has a limit of its own.
  schema: commaList({ about, initial, longest: mostRoleCharacters }),
  read: (value) => plain<readonly string[]>(value).filter((entry) => entry !== ''),
})

/** In lower case; empty means the initial value. */
const orInitial = (field: RoleField<readonly string[]>): RoleField<readonly string[]> => ({
  ...field,
  read(value) {
    const folded = field.read(value).map((entry) => entry.toLowerCase())
    return folded.length === 0 ? field.initial : folded
  },
})

/** Every field of a role, once: the bodies, defaults, answers and type of a role come from here. */
const roleFields = {
  issuer_ref: word('default', 'Issuer by name, id or "default"; stored as given.'),
  ttl: seconds(0, 'Validity of certificates; 0 is the mount’s default.'),
  max_ttl: seconds(0, 'Longest validity of certificates; 0 is the mount’s maximum.'),
  not_before_duration: seconds(30, 'Time between NotBefore and the moment of issue.'),
  not_after: word('', 'NotAfter of every certificate, as YYYY-MM-DDTHH:MM:SSZ; empty for ttl.'),

  allow_localhost: flag(true, 'Whether localhost and localdomain are allowed names.'),
  allowed_domains: words('Domains to compare names with.'),
  allowed_domains_template: flag(false, 'Whether allowed_domains may hold {{identity.entity.…}}.'),
  allow_bare_domains: flag(false, 'Whether an allowed domain itself is an allowed name.'),
  allow_subdomains: flag(false, 'Whether subdomains of allowed domains are allowed names, wildcards included.'),
  allow_glob_domains: flag(false, 'Whether allowed domains may hold *, for any characters, dots included.'),
  allow_wildcard_certificates: flag(true, 'Whether names may hold a wildcard; applies with allow_any_name too.'),
  allow_any_name: flag(false, 'Whether every name is allowed.'),
  enforce_hostnames: flag(true, 'Whether names, and the hosts of e-mail addresses, must be host names.'),
  cn_validations: orInitial(
    words('Permitted kinds of common name: email, hostname or both; or disabled.', ['email', 'hostname']),
  ),
  require_cn: flag(true, 'Whether a common name is required.'),
  allow_ip_sans: flag(true, 'Whether IP addresses are allowed.'),
  allowed_ip_sans_cidr: words('Networks that must contain IP addresses; empty for any.'),
  allowed_uri_sans: words('URIs that are allowed; may hold *.'),
  allowed_uri_sans_template: flag(false, 'Whether allowed_uri_sans may hold {{identity.entity.…}}.'),
  allowed_other_sans: words('Other names that are allowed, as OID;UTF8:value, the value with *; a single * for any.'),
  allowed_serial_numbers: words('Serial numbers of subjects that are allowed; may hold *.'),
  allowed_user_ids: words('User IDs of subjects that are allowed; may hold *.'),
  use_csr_common_name: flag(true, 'Whether the common name is taken from the CSR.'),
  use_csr_sans: flag(true, 'Whether the alternative names are taken from the CSR.'),

  key_type: word('rsa', 'rsa, ec, ed25519, or any, which only allows signing CSRs.'),
  key_bits: bits('Size of the key; 0 is 2048 for rsa and 256 for ec.'),
  signature_bits: bits('SHA-2 size when the issuer’s key is RSA: 256, 384 or 512; 0 is 256.'),
  use_pss: flag(false, 'Whether RSA issuers sign with PSS.'),

  key_usage: words('Key usages; empty for no such extension.', ['DigitalSignature', 'KeyAgreement', 'KeyEncipherment']),
  ext_key_usage: words('Extended key usages by name.'),
  ext_key_usage_oids: words('Further extended key usages by OID.'),
  server_flag: flag(true, 'Whether certificates are for TLS servers.'),
  client_flag: flag(true, 'Whether certificates are for TLS clients.'),
  code_signing_flag: flag(false, 'Whether certificates are for signing code.'),
  email_protection_flag: flag(false, 'Whether certificates are for protecting e-mail.'),
  policy_identifiers: {
    initial: [] as readonly string[],
    schema: raw({ about: 'Certificate policies: OIDs, or JSON objects of oid, cps and notice.', initial: [] }),
    read: readPolicies,
  },
  basic_constraints_valid_for_non_ca: flag(false, 'Whether certificates say CA:FALSE.'),
  no_rev_avail: flag(false, 'Whether certificates state that no revocation information exists (RFC 9608).'),
  allowed_extensions: words('OIDs of extensions to copy from a CSR.'),

  country: words('C of the subject.'),
  organization: words('O of the subject.'),
  ou: words('OU of the subject.'),
  locality: words('L of the subject.'),
  province: words('ST of the subject.'),
  street_address: words('Street of the subject.'),
  postal_code: words('Postal code of the subject.'),

  generate_lease: flag(false, 'Whether certificates come with a lease.'),
  no_store: flag(false, 'Whether certificates are not stored; then there is no lease either.'),
} satisfies Readonly<Record<string, RoleField<unknown>>>

type Fields = typeof roleFields

/** The fields of a role under their wire names, as given. */
export type RoleSettings = { readonly [K in keyof Fields]: Fields[K]['initial'] }

const entries = Object.entries(roleFields) as [keyof Fields, RoleField<unknown>][]

/** The body of a request that writes a role. */
export const roleBody: TObject = Type.Object(Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])))

/** The type of a role's field in an answer is that of its initial value. */
const typeOf = (initial: unknown): TSchema => {
  if (typeof initial === 'boolean') return Type.Boolean()
  if (typeof initial === 'number') return Type.Integer()
  return typeof initial === 'string' ? Type.String() : strings
}

/** The members of a role in an answer. */
export const roleProperties = Object.fromEntries(entries.map(([name, { initial }]) => [name, typeOf(initial)]))

export const initialSettings = Object.fromEntries(entries.map(([name, { initial }]) => [name, initial])) as RoleSettings

/**
 * Settings, with the fields of a body replacing earlier values.
 * @param body as the schema converts it
 * @throws ApiError 400 for a value that cannot be read
 */
export function withFields(before: RoleSettings, body: Readonly<Record<string, unknown>>): RoleSettings {
  const given = entries.flatMap(([name, field]) => (body[name] === undefined ? [] : [[name, field.read(body[name])]]))
  return { ...before, ...Object.fromEntries(given) }
}
