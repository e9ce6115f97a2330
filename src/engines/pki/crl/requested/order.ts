import { readSeconds, showSeconds } from '../../../../duration.ts'
import { badRequest } from '../../../../errors.ts'
import { integer, text } from '../../../../field.ts'

/** The fields common to all requests for a signed list. */
export const orderFields = {
  crl_number: integer({ about: 'The CRL number of the list.' }),
  delta_crl_base_number: integer({
    about: 'From 0: makes a delta list on the complete list of this number; -1 does not.',
  }),
  next_update: text({ about: 'After how long the next list is due, as a duration; 72h by default.' }),
  format: text({ about: 'pem (the default), or der, which is answered in base64.' }),
}

export interface ListFields {
  readonly crl_number?: number | undefined
  readonly delta_crl_base_number?: number | undefined
  readonly next_update?: string | undefined
  readonly format?: string | undefined
}

export interface ListOrder {
  readonly number: number
  /** Undefined for a complete list. */
  readonly base: number | undefined
  readonly nextUpdateSeconds: number
  readonly format: 'pem' | 'der'
}

const defaultNextUpdate = showSeconds(72 * 3600)
const formats = ['pem', 'der'] as const

/** @throws ApiError 400 */
export function readOrder(fields: ListFields): ListOrder {
  const { crl_number: number, delta_crl_base_number: base = -1, format: wanted = 'pem' } = fields
  if (number === undefined) throw badRequest('missing crl_number parameter')
  if (number < 0) throw badRequest('crl_number parameter must be 0 or greater')
  if (base < -1) throw badRequest('delta_crl_base_number parameter must be -1 or greater')
  const nextUpdateSeconds = readNextUpdate(fields.next_update ?? defaultNextUpdate)
  const format = formats.find((one) => one === wanted)
  if (format === undefined) throw badRequest(`unknown format value of ${wanted}`)
  return { number, base: base === -1 ? undefined : base, nextUpdateSeconds, format }
}

function readNextUpdate(duration: string): number {
  const magnitude = duration.trim().replace(/^-/, '')
  const seconds = readSeconds(magnitude, (reason) => {
    throw badRequest(`invalid value for next_update: ${reason}`)
  })
  if (seconds === 0 || magnitude !== duration.trim()) throw badRequest('next_update parameter must be greater than 0')
  return seconds
}
