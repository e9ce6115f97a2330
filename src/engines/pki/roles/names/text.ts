const control = /\p{Cc}/u

/** Whether a text can be an attribute of a name: well-formed Unicode without control characters, null bytes among them. */
export const isPlainText = (text: string): boolean => text.isWellFormed() && !control.test(text)

/** A value as it is repeated in an answer: not a megabyte of it. */
export const shorten = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text)
