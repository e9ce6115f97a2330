/** The folders through which a name from a path goes. */
const onTheWay = /^src\/(?:system|engines|auth|keys|request|leases|audit|jobs|quota)\//

const folding = /\.to(?:Locale)?(?:Lower|Upper)Case\(|\.localeCompare\(|\bfoldName\(/

/** Files there that may change the case of a text, with the kind of text: never a name from a path. */
const values: Readonly<Record<string, string>> = {
  'src/auth/acl/match.ts': 'values of parameters, for rules on them',
  'src/auth/acl/readlimits.ts': 'names of parameters in a policy',
  'src/auth/fold.ts': 'the fold itself',
  'src/auth/policies.ts': 'names of policies in bodies',
  'src/engines/pki/authority/authority.ts': 'the word default: the fold itself, and in bodies',
  'src/engines/pki/issuers/settings.ts': 'names of algorithms',
  'src/engines/pki/keys/keytype.ts': 'a key type in a refusal',
  'src/engines/pki/revocation/reason.ts': 'reasons of revocation',
  'src/engines/pki/roles/fields.ts': 'values of a role',
  'src/engines/pki/roles/names/domains.ts': 'host names',
  'src/engines/pki/roles/names/hostname.ts': 'host names',
  'src/engines/pki/roles/role.ts': 'names of our own properties',
  'src/engines/pki/roles/rules.ts': 'a key type in a refusal',
  'src/engines/pki/roles/usages.ts': 'names of key usages',
  'src/engines/transit/input/hashfunction.ts': 'names of hashes in bodies',
  'src/engines/transit/input/scheme.ts': 'a word of salt_length',
  'src/engines/transit/routes/keys/import.ts': 'key types in bodies',
  'src/keys/cluster/rowkey.ts': 'hexadecimal digits',
  'src/keys/managed/managedkeys.ts': 'names of managed keys in bodies and mount settings',
  'src/keys/managed/settings.ts': 'names of libraries, hexadecimal digits',
  'src/request/headers.ts': 'names of headers',
  'src/request/input.ts': 'content types',
  'src/request/openapi/document.ts': 'methods',
  'src/request/parameters.ts': 'names of parameters',
  'src/system/routes/hostinfo.ts': 'the name of the operating system',
  'src/system/routes/managedkeys.ts': 'names of managed keys in mount settings',
}

/**
 * Code that folds a name too late: after the pipeline, two spellings of a name would be two paths for policies and one
 * object for the engine.
 * @param code without comments and texts
 */
export const foldsLate = (path: string, code: string): string[] =>
  onTheWay.test(path) && folding.test(code) && !Object.hasOwn(values, path)
    ? [`${path}: changes the case of a text; a name in a path is folded by its engine's \`folds\` and nowhere later`]
    : []
