/** The caller's identity for templates of a role: only that of its token. */
export interface Identity {
  readonly displayName: string
  readonly metadata: Readonly<Record<string, string>>
}

const marker = /\{\{([^{}]*)\}\}/g

/**
 * Replaces `{{identity.entity.…}}` in the entries of a list: `name` is the token's display name, `metadata.x` its
 * metadata. An entry that cannot be resolved is left out, and so is one whose values contain `*`, which would be a
 * glob.
 */
export function resolve(entries: readonly string[], identity: Identity): readonly string[] {
  if (!entries.some((entry) => entry.includes('{{'))) return entries
  return entries.flatMap((entry) => {
    let sound = true
    const text = entry.replace(marker, (_, path: string) => {
      const value = valueAt(path.trim(), identity)
      sound &&= value !== undefined && value !== '' && !value.includes('*')
      return value ?? ''
    })
    return sound && !text.includes('{{') ? [text] : []
  })
}

/** Aliases of an entity are the token itself, whatever accessor is given. */
function valueAt(path: string, { displayName, metadata }: Identity): string | undefined {
  const place = /^identity\.entity\.(?:aliases\.[\w-]+\.)?(?:(name)|(?:custom_)?metadata\.(.+))$/.exec(path)
  if (place === null) return undefined
  const [, name, key = ''] = place
  if (name !== undefined) return displayName
  return Object.hasOwn(metadata, key) ? metadata[key] : undefined
}
