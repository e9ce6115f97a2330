import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const parts = ['mariadb', 'token', 'state']

/** The first start of a data directory. `finished` is called when its owner has seen the root token. */
export interface FirstStart {
  finished(): void
}

/**
 * Makes the data directory, and says whether this is its first start. From the first byte until `finished` a marker
 * lies in it: whatever an unfinished first start left behind can hold nothing of value, because nobody ever had a token
 * for it and it never served, so it is removed and made again.
 * @throws Error when the directory has lost one of its parts
 */
export function firstStart(directory: string): FirstStart | undefined {
  const marker = join(directory, 'first-start-is-not-finished')
  const missing = parts.filter((part) => !existsSync(join(directory, part)))
  if (!existsSync(marker) && missing.length < parts.length) {
    if (missing.length > 0) throw new Error(`${directory} is damaged: ${missing.join(' and ')} is not there any more`)
    return undefined
  }
  writeFileSync(marker, '')
  for (const part of parts) rmSync(join(directory, part), { recursive: true, force: true })
  mkdirSync(join(directory, 'state'))
  return { finished: () => rmSync(marker) }
}
