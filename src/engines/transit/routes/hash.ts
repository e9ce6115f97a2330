import { hashRoute } from '../../../tools/hash.ts'

export const hashData = hashRoute('hash')
export const hashDataWith = hashRoute('hash/:algorithm')
