const control = /\p{Cc}/u

/**
 * Whether a text can be an attribute of a name: well-formed Unicode without control characters, including null bytes.
 */
export const isPlainText = (text: string): boolean => text.isWellFormed() && !control.test(text)

/** A value shortened for repeating in an answer: it may have a megabyte. */
export const shorten = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text)
