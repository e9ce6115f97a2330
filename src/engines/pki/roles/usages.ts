import { extendedKeyUsages } from '../../../x509/extensions/extendedkeyusage.ts'
import { type KeyUsage, keyUsages } from '../../../x509/extensions/keyusage.ts'
import { shorten } from './names/text.ts'
import type { Role } from './role.ts'

const fold = (name: string): string => name.trim().toLowerCase()
const namedIn = (names: readonly string[]): ((name: string) => boolean) => {
  const folded = new Set(names.map(fold))
  return (name) => folded.has(fold(name))
}

/** The key usages with these names, in any case; unknown names are ignored. */
export const keyUsagesOf = (names: readonly string[]): readonly KeyUsage[] => keyUsages.filter(namedIn(names))

interface NamedUsages {
  readonly key_usage?: readonly string[] | undefined
  readonly ext_key_usage?: readonly string[] | undefined
}

/** A warning for each of these fields in which a name is no usage: such names are ignored. */
export function warningsOfUsages({ key_usage = [], ext_key_usage = [] }: NamedUsages): readonly string[] {
  const unknown = {
    key_usage: strangers(key_usage, keyUsages),
    ext_key_usage: strangers(ext_key_usage, Object.keys(extendedKeyUsages)),
  }
  return Object.entries(unknown).flatMap(([field, names]) =>
    names.length === 0 ? [] : [`${field}: no usage has the name ${listed(names)}; ignored`],
  )
}

/**
 * A warning about key usages that a CA certificate does not get: DigitalSignature is the only one besides its own.
 */
export function warningOfCaUsages(names: readonly string[]): string | undefined {
  const without = keyUsagesOf(names).filter((usage) => !usagesOfCa.has(usage))
  return without.length === 0
    ? undefined
    : `key_usage: a CA certificate may have only DigitalSignature besides its own usages, not ${listed(without)}; ignored`
}

const usagesOfCa: ReadonlySet<KeyUsage> = new Set<KeyUsage>(['DigitalSignature', 'CertSign', 'CRLSign'])

const listed = (names: readonly string[]): string => names.slice(0, 10).map(shorten).join(', ')

function strangers(names: readonly string[], known: readonly string[]): readonly string[] {
  const isKnown = namedIn(known)
  return names.filter((name) => name !== '' && !isKnown(name))
}

/** OIDs of extended key usages by name, then further ones, each once. */
export function extendedKeyUsagesOf(names: readonly string[], oids: readonly string[]): readonly string[] {
  const isNamed = namedIn(names)
  const known = Object.entries(extendedKeyUsages).flatMap(([name, oid]) => (isNamed(name) ? [oid] : []))
  return [...new Set([...known, ...oids])]
}

type Purposes = Pick<
  Role,
  'extKeyUsage' | 'extKeyUsageOids' | 'serverFlag' | 'clientFlag' | 'codeSigningFlag' | 'emailProtectionFlag'
>

/** OIDs of the extended key usages of a role: the flags add to the named ones. */
export function extendedKeyUsagesOfRole(role: Purposes): readonly string[] {
  const flags = {
    ServerAuth: role.serverFlag,
    ClientAuth: role.clientFlag,
    CodeSigning: role.codeSigningFlag,
    EmailProtection: role.emailProtectionFlag,
  }
  const flagged = Object.entries(flags).flatMap(([name, set]) => (set ? [name] : []))
  return extendedKeyUsagesOf([...role.extKeyUsage, ...flagged], role.extKeyUsageOids)
}
