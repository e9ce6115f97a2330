import { readMoment } from '../../../clock/moment.ts'
import { isOid } from '../../../crypto/oid.ts'
import { badRequest } from '../../../errors.ts'
import { mostRoleCharacters, type RoleSettings } from './fields.ts'
import { readNetwork } from './names/address.ts'
import { readOtherName } from './names/othername.ts'
import { isPlainText } from './names/text.ts'
import { warningsOfUsages } from './usages.ts'

const maxEntries = 10_000
const maxEntryCharacters = 4096

const sizes: Readonly<Record<string, readonly number[]>> = {
  rsa: [2048, 3072, 4096],
  ec: [224, 256, 384, 521],
}

/** Extensions that the authority makes itself; they are never copied from a CSR. */
const ownExtensions = new Map([
  ['2.5.29.9', 'subject directory attributes'],
  ['2.5.29.14', 'subject key identifier'],
  ['2.5.29.15', 'key usage'],
  ['2.5.29.17', 'subject alternative name'],
  ['2.5.29.18', 'issuer alternative name'],
  ['2.5.29.19', 'basic constraints'],
  ['2.5.29.30', 'name constraints'],
  ['2.5.29.31', 'CRL distribution points'],
  ['2.5.29.32', 'certificate policies'],
  ['2.5.29.33', 'policy mappings'],
  ['2.5.29.35', 'authority key identifier'],
  ['2.5.29.36', 'policy constraints'],
  ['2.5.29.37', 'extended key usage'],
  ['2.5.29.46', 'freshest CRL'],
  ['2.5.29.54', 'inhibit anyPolicy'],
  ['2.5.29.56', 'no revocation available'],
  ['1.3.6.1.5.5.7.1.1', 'authority information access'],
])

/**
 * The rules between the settings of a role.
 * @returns warnings
 * @throws ApiError 400 naming the field
 */
export function checkSettings(settings: RoleSettings): readonly string[] {
  checkSize(settings)
  checkTimes(settings)
  checkKeys(settings)
  checkNames(settings)
  checkExtensions(settings)
  return warningsOf(settings)
}

function checkSize(settings: RoleSettings): void {
  for (const [name, value] of Object.entries(settings)) {
    if (Array.isArray(value) && value.length > maxEntries) {
      throw badRequest(`${name} may have at most ${maxEntries} entries`)
    }
    const texts = Array.isArray(value) ? value : [value]
    if (texts.some((text) => typeof text === 'string' && text.length > maxEntryCharacters)) {
      throw badRequest(`an entry of ${name} may have at most ${maxEntryCharacters} characters`)
    }
    if (texts.some((text) => typeof text === 'string' && !isPlainText(text))) {
      throw badRequest(`${name} contains a control character`)
    }
  }
  if (JSON.stringify(settings).length > mostRoleCharacters) {
    throw badRequest(`a role may have at most ${mostRoleCharacters} characters`)
  }
}

function checkTimes({ ttl, max_ttl, not_after }: RoleSettings): void {
  if (max_ttl > 0 && ttl > max_ttl) throw badRequest('"ttl" value must be less than "max_ttl" value')
  if (not_after !== '' && readMoment(not_after) === undefined) {
    throw badRequest(`not_after ${JSON.stringify(not_after)} is not a time of the form YYYY-MM-DDTHH:MM:SSZ`)
  }
}

function checkKeys({ key_type, key_bits, signature_bits }: RoleSettings): void {
  if (!['rsa', 'ec', 'ed25519', 'any'].includes(key_type)) throw badRequest(`unknown key type ${key_type}`)
  const allowed = sizes[key_type]
  if (allowed !== undefined && key_bits !== 0 && !allowed.includes(key_bits)) {
    throw badRequest(
      key_type === 'rsa' && key_bits < 2048
        ? `RSA keys < 2048 bits are unsafe and not supported: got ${key_bits}`
        : `unsupported bit length for ${key_type.toUpperCase()} key: ${key_bits}`,
    )
  }
  if (![0, 256, 384, 512].includes(signature_bits)) {
    throw badRequest(`unsupported hash signature algorithm: ${signature_bits}`)
  }
}

function checkNames(settings: RoleSettings): void {
  checkValidations(settings.cn_validations)
  const isAny = settings.allowed_other_sans.length === 1 && settings.allowed_other_sans[0] === '*'
  for (const entry of isAny ? [] : settings.allowed_other_sans) {
    const other = readOtherName(entry)
    if (typeof other === 'string') throw badRequest(`error parsing allowed_other_sans: ${other}`)
  }
  for (const network of settings.allowed_ip_sans_cidr) {
    if (readNetwork(network) === undefined) {
      throw badRequest(`allowed_ip_sans_cidr: ${JSON.stringify(network)} is not a network in CIDR notation`)
    }
  }
}

function checkValidations(validations: readonly string[]): void {
  const incorrect = (reason: string) => badRequest(`cn_validations value incorrect: ${reason}`)
  const seen = new Set<string>()
  for (const validation of validations) {
    if (!['disabled', 'email', 'hostname'].includes(validation)) throw incorrect(`unknown type: \`${validation}\``)
    if (seen.has(validation)) throw incorrect(`\`${validation}\` specified multiple times`)
    seen.add(validation)
  }
  if (seen.has('disabled') && seen.size > 1) {
    throw incorrect('cannot specify `disabled` along with `email` or `hostname`')
  }
}

/** @throws ApiError 400 for a purpose that is not an OID */
export function checkPurposes(oids: readonly string[]): void {
  for (const oid of oids) {
    if (isOid(oid)) continue
    throw badRequest(`${JSON.stringify(oid)} could not be parsed as a valid oid for an extended key usage`)
  }
}

function checkExtensions({ ext_key_usage_oids, allowed_extensions }: RoleSettings): void {
  checkPurposes(ext_key_usage_oids)
  for (const oid of allowed_extensions) {
    if (!isOid(oid)) throw badRequest(`allowed_extensions: ${JSON.stringify(oid)} is not an OID`)
    const own = ownExtensions.get(oid)
    if (own !== undefined) throw badRequest(`allowed_extensions: ${oid} (${own}) is never copied from a CSR`)
  }
}

function warningsOf(settings: RoleSettings): readonly string[] {
  const warnings: string[] = []
  if (settings.no_store && settings.generate_lease) {
    warnings.push(
      'mutually exclusive values no_store=true and generate_lease=true were both specified; no_store=true takes priority',
    )
  }
  if (settings.not_after !== '' && settings.ttl > 0) warnings.push('not_after takes priority over ttl')
  warnings.push(...warningsOfUsages(settings))
  if (settings.allowed_domains_template || settings.allowed_uri_sans_template) {
    warnings.push('templates take their values from the token; the creator of a token chooses its metadata')
  }
  return warnings
}
