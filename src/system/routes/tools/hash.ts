import { hashRoute } from '../../../tools/hash.ts'

export const hashTool = hashRoute('tools/hash')
export const hashToolWith = hashRoute('tools/hash/:algorithm')
