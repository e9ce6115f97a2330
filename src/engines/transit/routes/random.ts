import { randomRoute } from '../../../tools/random.ts'

export const generateRandom = randomRoute('random')
/** A single segment is the source if it names one, else the number of bytes. */
export const generateRandomFirst = randomRoute('random/:first')
export const generateRandomFrom = randomRoute('random/:source/:bytes')
