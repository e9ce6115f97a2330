/** The most names that one warning repeats. */
export const mostShownNames = 100

const longestShownName = 100

/**
 * The warning about parameters that nothing reads.
 * @param where where they were sent, if not in the request itself
 */
export const ignoredWarning = (names: readonly string[], where = ''): string =>
  `Endpoint ignored these unrecognized parameters${where}: [${shownNames(names)}]`

/** Names come from the caller: a misplaced secret or a megabyte of names is not sent back whole. */
export const shownNames = (names: readonly string[]): string =>
  names.toSorted().slice(0, mostShownNames).map(shownName).join(' ')

/** One of these names; a name that was cut stays as it is. */
export const shownName = (name: string): string =>
  name.length > longestShownName ? `${name.slice(0, longestShownName)}…` : name
