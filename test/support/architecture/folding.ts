/** The folders through which a name from a path goes. */
const onTheWay = /^src\/(?:system|engines|auth|keys|request|leases|audit|jobs|quota)\//

/** Changes of case and of blanks, and patterns that ignore case. */
const folding = new RegExp(
  [
    String.raw`\.to(?:Locale)?(?:Lower|Upper)Case\(|\.localeCompare\(|\bfoldName\(|\.trim(?:Start|End)?\(\)`,
    String.raw`(?<=(?:[(=,:?&|!]|\breturn)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*i[a-z]*`,
  ].join('|'),
  'g',
)

/** Files there that do so, how often at most, and with which kind of text: never with a name from a path. */
const values: Readonly<Record<string, readonly [count: number, kind: string]>> = {
  'src/audit/options.ts': [1, 'the word stdout for a path'],
  'src/auth/acl/hcl.ts': [2, 'numbers and blanks of a policy'],
  'src/auth/acl/match.ts': [2, 'values of parameters, for rules on them'],
  'src/auth/acl/readlimits.ts': [2, 'names of parameters in a policy'],
  'src/auth/fold.ts': [2, 'the fold itself'],
  'src/auth/methods/token/grant.ts': [1, 'whether a name of a policy in a body is empty'],
  'src/auth/policies.ts': [2, 'names of policies in bodies, whether a text is empty'],
  'src/engines/pki/authority/authority.ts': [2, 'the word default: the fold itself, and in bodies'],
  'src/engines/pki/authority/urls.ts': [2, 'URLs'],
  'src/engines/pki/crl/requested/order.ts': [2, 'durations'],
  'src/engines/pki/issuers/settings.ts': [5, 'names of algorithms, lists in bodies'],
  'src/engines/pki/issuers/wishes.ts': [1, 'lists in bodies'],
  'src/engines/pki/publication/settings.ts': [2, 'durations'],
  'src/engines/pki/revocation/reason.ts': [3, 'reasons of revocation'],
  'src/engines/pki/roles/fields.ts': [2, 'values of a role'],
  'src/engines/pki/roles/names/domains.ts': [1, 'host names'],
  'src/engines/pki/roles/names/hostname.ts': [4, 'host names'],
  'src/engines/pki/roles/names/othername.ts': [2, 'other names'],
  'src/engines/pki/roles/policies.ts': [3, 'policy identifiers of a role'],
  'src/engines/pki/roles/role.ts': [1, 'names of our own properties'],
  'src/engines/pki/roles/template.ts': [1, 'a place of a template'],
  'src/engines/pki/roles/usages.ts': [2, 'names of key usages'],
  'src/engines/pki/routes/config/crl.ts': [1, 'lists in bodies'],
  'src/engines/pki/routes/config/issuers.ts': [1, 'whether a reference in a body is empty'],
  'src/engines/pki/routes/issue/signintermediate.ts': [1, 'hexadecimal digits'],
  'src/engines/pki/routes/revocation/revoke.ts': [1, 'a serial number in a body'],
  'src/engines/pki/tidy/fields.ts': [1, 'durations'],
  'src/engines/transit/input/hashfunction.ts': [1, 'names of hashes in bodies'],
  'src/engines/transit/input/scheme.ts': [1, 'a word of salt_length'],
  'src/engines/transit/routes/keys/import.ts': [1, 'key types in bodies'],
  'src/keys/cluster/rowkey.ts': [1, 'hexadecimal digits'],
  'src/keys/kek/components.ts': [1, 'hexadecimal digits'],
  'src/keys/managed/managedkeys.ts': [4, 'names of managed keys in bodies and mount settings'],
  'src/keys/managed/mechanism.ts': [1, 'hexadecimal digits'],
  'src/keys/managed/settings.ts': [4, 'names of libraries, hexadecimal digits'],
  'src/quota/config.ts': [1, 'paths in bodies'],
  'src/request/caching.ts': [1, 'a header'],
  'src/request/canonicalise.ts': [1, 'a credential in a header'],
  'src/request/convert.ts': [3, 'lists in bodies'],
  'src/request/headers.ts': [2, 'names of headers'],
  'src/request/help.ts': [1, 'a text of our own'],
  'src/request/input.ts': [3, 'content types, whether a body is a form'],
  'src/request/json/parse.ts': [1, 'whether a body is empty'],
  'src/request/parameters.ts': [2, 'names of parameters'],
  'src/request/path.ts': [1, 'the scheme of a request line'],
  'src/system/routes/generateroot.ts': [1, 'a secret in a body'],
  'src/system/routes/hostinfo.ts': [1, 'the name of the operating system'],
  'src/system/routes/managedkeys.ts': [1, 'names of managed keys in mount settings'],
  'src/system/routes/unseal.ts': [1, 'a secret in a body'],
}

/**
 * Code that folds a name too late: after the pipeline, two spellings of a name would be two paths for policies and one
 * object for the engine.
 * @param code without comments and texts
 */
export function foldsLate(path: string, code: string): string[] {
  if (!onTheWay.test(path)) return []
  const found = [...code.matchAll(folding)].map(([text]) => text)
  const [count, kind] = values[path] ?? [0, 'no value']
  if (found.length <= count) return []
  const why = "a name in a path is folded by its engine's `folds` and nowhere later"
  return [`${path}: changes the case or blanks of a text ${found.length} times, not ${count} (${kind}); ${why}`]
}
