/** In the last cell of a survivor without a judgement. */
export const unjudged = 'not judged yet'

/** Columns of the table of survivors. */
export const heads = ['place', 'operator', 'before', 'after', 'tests', 'judgement']

/** The cells that name a mutant, without its line number, which changes with the code above. */
export const keyOf = ([place = '', ...rest]: readonly string[]): string =>
  [place.replace(/:\d+$/, ''), ...rest.slice(0, 3)].join(' | ')

/** The judgements of a report, by mutant. A `|` in code is escaped, so it parts no cells. */
export function judgementsIn(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split('\n')) {
    const cells = line.slice(2, -2).split(' | ')
    const judgement = cells[heads.length - 1]
    if (cells.length === heads.length && judgement !== undefined && judgement !== unjudged)
      found.set(keyOf(cells), judgement)
  }
  return found
}
