import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../../docs')

/** A fenced block of commands. */
export interface Block {
  /** The line of the document on which its text begins. */
  readonly line: number
  readonly text: string
  /** Whether a test runs it. */
  readonly runs: boolean
  /** The paragraph before it. */
  readonly introduction: string
}

export const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8')

/**
 * The blocks of commands of a document in docs/: fences of `bash`, of `bash run` for those that a test runs, and of
 * `logrotate`, which runs commands too.
 */
export function blocksOf(name: string): readonly Block[] {
  const lines = textOf(name).split('\n')
  return lines.flatMap((fence, at) => {
    if (!/^```(bash|logrotate)\b/.test(fence)) return []
    const end = lines.indexOf('```', at)
    const [introduction = ''] = lines.slice(0, at).join('\n').trimEnd().split('\n\n').slice(-1)
    return [{ line: at + 2, text: lines.slice(at + 1, end).join('\n'), runs: fence === '```bash run', introduction }]
  })
}

/**
 * The rows of the table under a heading, as their cells.
 * @throws Error when there is no table
 */
export function tableOf(name: string, heading: string): readonly (readonly string[])[] {
  const [, section] = textOf(name).split(`\n## ${heading}\n`)
  const [part = ''] = section?.split('\n## ') ?? []
  const rows = part.split('\n').filter((line) => line.startsWith('|'))
  if (rows.length < 3) throw new Error(`${name} has no table under ${heading}`)
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** The texts between backticks. */
export const quotedIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted)
