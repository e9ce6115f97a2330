import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Settings } from './results.ts'
import type { Sample } from './sample.ts'
import { project } from './trial/site.ts'

const store = join(project, '.build', 'mutants-sample.json')

/** The inputs that determine a sample. */
const keyOf = (source: string, { seed, count, only }: Settings): string => JSON.stringify([source, seed, count, only])

/** The sample that was drawn last, if it was drawn from this source with these settings. */
export function loadSample(source: string, settings: Settings): Sample | undefined {
  if (!existsSync(store)) return undefined
  const { key, sample } = JSON.parse(readFileSync(store, 'utf8')) as { key: string; sample: Sample }
  return key === keyOf(source, settings) ? sample : undefined
}

export function saveSample(source: string, settings: Settings, sample: Sample): void {
  mkdirSync(dirname(store), { recursive: true })
  writeFileSync(store, JSON.stringify({ key: keyOf(source, settings), sample }))
}

/** A digest of the source and of the operators: tests may be added between two runs. */
export function sourceDigest(): string {
  const files = globSync('{src,scripts/mutants/mutator}/**/*', { cwd: project, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const hash = createHash('sha256')
  for (const file of files.sort()) hash.update(file.slice(project.length)).update(readFileSync(file))
  return hash.digest('hex')
}
