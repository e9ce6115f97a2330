/** A test that a row of a checklist names: its file, and its titles from the outermost inwards. */
export interface Named {
  readonly file: string
  readonly titles: readonly string[]
}

/** One line of a checklist: what must hold, and the tests that prove it. */
export interface Row {
  /** A letter of the section and a number: rows are counted, so that a lost one leaves a gap. */
  readonly id: string
  readonly rule: string
  readonly tests: readonly Named[]
}

export interface Section {
  readonly title: string
  /** The number of rows by the heading. */
  readonly count: number
  readonly rows: readonly Row[]
}

const heading = /^## (?<title>.+) \((?<count>\d+)\)$/
const line = /^\| (?<id>[A-Z]+\d+) \| (?<rule>.+?) \| (?<tests>.*?) \|$/
const named = /^`(?<file>test\/[\w./-]+\.test\.ts)` › (?<titles>.+)$/

/** Reads a checklist: sections `## Title (rows)` with tables `| id | rule | tests |`, tests divided by `<br>`. */
export function readChecklist(text: string): Section[] {
  const sections: { title: string; count: number; rows: Row[] }[] = []
  for (const one of text.split('\n')) {
    const { title, count } = heading.exec(one)?.groups ?? {}
    if (title !== undefined) sections.push({ title, count: Number(count), rows: [] })
    const { id, rule, tests } = line.exec(one)?.groups ?? {}
    if (id !== undefined && rule !== undefined) sections.at(-1)?.rows.push({ id, rule, tests: readTests(tests ?? '') })
  }
  return sections
}

function readTests(cell: string): Named[] {
  return cell.split('<br>').flatMap((one) => {
    const { file, titles } = named.exec(one.trim())?.groups ?? {}
    return file === undefined || titles === undefined ? [] : [{ file, titles: titles.split(' › ') }]
  })
}

const title =
  /(?<before>\b(?:describe|test|it)(?:\.\w+)*|[)\]])\(\s*(?<quote>['"`])(?<text>(?:\\.|(?!\k<quote>)[^\\\n])*)\k<quote>,/g

/**
 * The place of every test and group of a file: its titles from the outermost inwards. The formatter indents the
 * contents of a group, so that the line on which a title's bracket opens tells the group.
 */
export function titlesOf(source: string): Set<string> {
  const around: { indent: number; text: string }[] = []
  const paths = new Set<string>()
  for (const { index, groups } of source.matchAll(title)) {
    const { before = '', text = '' } = groups ?? {}
    const line = source.slice(source.lastIndexOf('\n', index + before.length) + 1)
    const indent = line.length - line.trimStart().length
    while ((around.at(-1)?.indent ?? -1) >= indent) around.pop()
    around.push({ indent, text: text.replaceAll(/\\(.)/g, '$1') })
    paths.add(around.map((one) => one.text).join(' › '))
  }
  return paths
}

/** The paths that a heading names in backticks, each optional part of them once with and once without. */
export function pathsOf(title: string): Set<string> {
  const paths = [...title.matchAll(/`([^`]+)`/g)].flatMap(([, path = '']) => expand(path))
  return new Set(paths)
}

function expand(path: string): string[] {
  const optional = /\(([^)]*)\)/.exec(path)
  if (optional === null) return [path]
  const [whole, part = ''] = optional
  return [...expand(path.replace(whole, '')), ...expand(path.replace(whole, part))]
}
