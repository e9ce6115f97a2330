import { extendedKeyUsages } from '../../../x509/extensions/extendedkeyusage.ts'
import { type KeyUsage, keyUsages } from '../../../x509/extensions/keyusage.ts'
import type { Role } from './role.ts'

const fold = (name: string): string => name.trim().toLowerCase()
const namedIn = (names: readonly string[]): ((name: string) => boolean) => {
  const folded = new Set(names.map(fold))
  return (name) => folded.has(fold(name))
}

/** The key usages with these names, in any case; unknown names are ignored. */
export const keyUsagesOf = (names: readonly string[]): readonly KeyUsage[] => keyUsages.filter(namedIn(names))

/** The names among these that are not key usages. */
export const unknownKeyUsages = (names: readonly string[]): readonly string[] => strangers(names, keyUsages)

/** The names among these that are not extended key usages. */
export const unknownExtendedKeyUsages = (names: readonly string[]): readonly string[] =>
  strangers(names, Object.keys(extendedKeyUsages))

function strangers(names: readonly string[], known: readonly string[]): readonly string[] {
  const isKnown = namedIn(known)
  return names.filter((name) => !isKnown(name))
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
