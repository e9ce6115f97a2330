import { Type } from 'typebox'
import { data } from '../answers.ts'
import { decodeInput } from '../crypto/base64.ts'
import { digest, hashes } from '../crypto/hashes.ts'
import { badRequest } from '../errors.ts'
import { text, wholeBody } from '../field.ts'
import type { Approval } from '../keys/use/approval.ts'
import { route } from '../route.ts'
import { encodingOf } from './encoding.ts'

const body = Type.Object({
  input: text({ about: 'The value to hash, in base64.', longest: wholeBody }),
  algorithm: text({ about: 'sha2-224, -256, -384, -512 or sha3-224, -256, -384, -512; sha2-256 when absent.' }),
  format: text({ about: 'Encoding of the digest: hex (default) or base64.' }),
})

export interface HashContext {
  readonly approval: Approval
}

/** Used by Transit and by sys/tools. */
export const hashRoute = (path: string) =>
  route<HashContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Hashes the input, without a key.',
    body,
    answers: data(Type.Object({ sum: Type.String() })),
    run({ context, params, body, warn }) {
      if (body.input === undefined) throw badRequest('input missing')
      const name = params.algorithm ?? (body.algorithm || 'sha2-256')
      const hash = hashes.get(name)
      if (hash === undefined || hash.family === 'sha1') throw badRequest(`unsupported algorithm ${name}`)
      context.approval.warn(warn, hash)
      const format = body.format || 'hex'
      const encoding = encodingOf(format, format)
      return { sum: digest(hash, decodeInput(body.input)).toString(encoding) }
    },
  })
