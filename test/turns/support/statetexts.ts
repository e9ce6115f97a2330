import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { markerIn } from '../../../src/turns/marker.ts'

/** The bytes of every file of a state directory, as latin1, and the texts of its markers, which are links to no file. */
export const stateTexts = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true }).map((entry) => {
    const path = join(directory, entry.name)
    return entry.isSymbolicLink() ? (markerIn(path) ?? '') : readFileSync(path, 'latin1')
  })
