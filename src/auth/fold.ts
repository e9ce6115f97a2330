import type { Fold } from '../engine.ts'

/** The fold of names of policies and managed keys: lower case, without surrounding blanks. */
export const foldName: Fold = (name) => name.trim().toLowerCase()
