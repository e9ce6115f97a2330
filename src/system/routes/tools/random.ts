import { randomRoute } from '../../../tools/random.ts'

export const randomTool = randomRoute('tools/random')
export const randomToolFirst = randomRoute('tools/random/:first')
export const randomToolFrom = randomRoute('tools/random/:source/:bytes')
