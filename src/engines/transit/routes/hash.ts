import { Type } from 'typebox'
import { digest, hashes } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { route } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { decodeInput } from '../input/base64.ts'
import { encodingOf } from '../input/encoding.ts'

const body = Type.Object({
  input: text({ about: 'The value to hash, in base64.' }),
  algorithm: text({ about: 'sha2-224, -256, -384, -512 or sha3-224, -256, -384, -512; sha2-256 when absent.' }),
  format: text({ about: 'How the digest is written: hex (default) or base64.' }),
})

const hashRoute = (path: string) =>
  route<TransitContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Hashes the input. No key takes part.',
    body,
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

export const hashData = hashRoute('hash')
export const hashDataWith = hashRoute('hash/:algorithm')
