import { Type } from 'typebox'
import { after } from '../after.ts'
import { data } from '../answers.ts'
import { badRequest } from '../errors.ts'
import { integer, text } from '../field.ts'
import type { RandomSource } from '../keys/use/random.ts'
import { type MaybePromise, route } from '../route.ts'
import { encodingOf } from './encoding.ts'

const mostBytes = 131072
const sources: readonly string[] = ['platform', 'seal', 'all'] satisfies RandomSource[]
const isSource = (word: string | undefined): word is RandomSource => word !== undefined && sources.includes(word)

const body = Type.Object({
  bytes: integer({ about: 'Number of bytes, 1 to 131072; 32 when absent.' }),
  format: text({ about: 'Encoding of the bytes: base64 (default) or hex.' }),
  source: text({ about: 'platform (the host), seal (the PKCS#11 token) or all (both, mixed).' }),
})

function countOf(word: string): number {
  if (/^(?:0|[1-9]\d*)$/.test(word)) return Number(word)
  throw badRequest(`error parsing url-set byte count: strconv.Atoi: parsing ${JSON.stringify(word)}: invalid syntax`)
}

export interface RandomContext {
  random(source: RandomSource, bytes: number): MaybePromise<Buffer>
}

/** Used by Transit and by sys/tools. */
export const randomRoute = (path: string) =>
  route<RandomContext, typeof body>({
    method: 'POST',
    path,
    stands: { first: (word) => (isSource(word) ? 'source' : 'bytes') },
    access: 'token',
    about: 'Random bytes.',
    body,
    answers: data(Type.Object({ random_bytes: Type.String() })),
    run({ context, params, body }) {
      const { first } = params
      const source = params.source ?? (isSource(first) ? first : body.source || 'platform')
      const count = params.bytes ?? (isSource(first) ? undefined : first)
      const bytes = count === undefined ? (body.bytes ?? 32) : countOf(count)
      if (bytes < 1) throw badRequest("'bytes' cannot be less than 1")
      if (bytes > mostBytes) throw badRequest(`'bytes' should be less than ${mostBytes}`)
      if (!isSource(source)) {
        throw badRequest(`unsupported entropy source "${source}"; must be "platform" or "seal", or "all"`)
      }
      const format = body.format || 'base64'
      const encoding = encodingOf(format, `"${format}"`)
      return after(context.random(source, bytes), (random) => {
        const text = random.toString(encoding)
        random.fill(0)
        return { random_bytes: text }
      })
    },
  })
