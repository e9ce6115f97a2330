/** Brings a name in a path into the form in which it is stored and compared. */
export type Fold = (name: string) => string

/** The fold of names of policies and managed keys: lower case, without surrounding blanks. */
export const foldName: Fold = (name) => name.trim().toLowerCase()
