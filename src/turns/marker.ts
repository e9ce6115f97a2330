import { lstatSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'

/** What file systems answer that have no symbolic links (symlink(2), and those that are mounted by CIFS). */
const withoutLinks = ['EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS']

/**
 * Makes a marker, unless there is one: a symbolic link whose target is the text. It appears with its text in one step,
 * and on a full disk too, since a short target needs no block of it. A file system without symbolic links gets a file.
 * @returns false if something is there already
 */
export function makeMarker(path: string, text: string): boolean {
  for (const make of [() => symlinkSync(text, path), () => writeFileSync(path, text, { flag: 'wx', mode: 0o600 })]) {
    try {
      make()
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      if (!withoutLinks.includes(codeOf(error))) throw error
    }
  }
  throw new Error(`no marker can be made at ${path}`)
}

/** The text of a marker; undefined where there is none. */
export function markerIn(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  try {
    if (found?.isSymbolicLink()) return readlinkSync(path)
    return found?.isFile() ? readFileSync(path, 'utf8') : undefined
  } catch (error) {
    // It vanished, or was replaced by one of the other kind, meanwhile.
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EINVAL') return undefined
    throw error
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')
