/** The places of a statement for these values: `?, ?, ?`. */
export const places = (values: readonly unknown[]): string => values.map(() => '?').join(', ')
