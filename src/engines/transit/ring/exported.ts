import { Type } from 'typebox'
import { data, mapOf } from '../../../answers.ts'

/** The answer of every export: the versions of a key, by their number. */
export const exported = data(Type.Object({ name: Type.String(), type: Type.String(), keys: mapOf(Type.String()) }))
