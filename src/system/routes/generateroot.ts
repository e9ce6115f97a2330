import { Type } from 'typebox'
import { type Answers, bare, data, empty, titled } from '../../answers.ts'
import { credentialLength } from '../../auth/credential.ts'
import { systemTtlSeconds } from '../../auth/lifetime.ts'
import { rootTtlSeconds } from '../../auth/roottoken.ts'
import { badRequest } from '../../errors.ts'
import { duration, text } from '../../field.ts'
import { Answer, type Data } from '../../route.ts'
import { endpoint, noFields } from '../context.ts'

const progressAnswer = titled('RootGeneration', {
  nonce: Type.String(),
  started: Type.Boolean(),
  progress: Type.Integer(),
  required: Type.Integer(),
  complete: Type.Boolean(),
  encoded_token: Type.String(),
  encoded_root_token: Type.String(),
  pgp_fingerprint: Type.String(),
  otp: Type.String(),
  otp_length: Type.Integer(),
})

/** The answer of every route here: one secret completes an attempt. */
const progress = (nonce: string | undefined, { otp = '', token = '' } = {}): Data => ({
  nonce: nonce ?? '',
  started: nonce !== undefined && token === '',
  progress: token === '' ? 0 : 1,
  required: 1,
  complete: token !== '',
  encoded_token: token,
  encoded_root_token: token,
  pgp_fingerprint: '',
  otp,
  otp_length: credentialLength,
})

/** Where the routes stand, and how they answer. */
interface Base {
  readonly path: string
  readonly answers: Answers
  answer(progress: Data): Answer | Data
}

/** The path of Vault and of earlier OpenBao. */
const older: Base = {
  path: 'generate-root',
  answers: bare(progressAnswer),
  answer: (shown) => new Answer({ bare: shown }),
}
/** That of OpenBao’s command line since 2.7, which knows no other; the answer is in the envelope. */
const newer: Base = { path: 'generate-root-token', answers: data(progressAnswer), answer: (shown) => shown }

const read = ({ path, answers, answer }: Base) =>
  endpoint({
    method: 'GET',
    path: `${path}/attempt`,
    access: 'public',
    about: 'Whether a root token is being generated.',
    body: noFields,
    answers,
    async run({ context }) {
      return answer(progress((await context.rootGeneration.state()).nonce))
    },
  })

const begin = ({ path, answers, answer }: Base) =>
  endpoint({
    method: 'POST',
    path: `${path}/attempt`,
    access: 'public',
    about: 'Begins to generate a root token for the holder of the recovery secret; for ten minutes.',
    body: Type.Object({
      otp: text({ about: `What the token is XORed with: ${credentialLength} characters; made when absent.` }),
      pgp_key: text({ about: 'Not available.' }),
    }),
    answers,
    async run({ context: { rootGeneration, tries }, body }) {
      if (body.pgp_key) throw badRequest('pgp_key is not available: give an otp, or take the one in the answer')
      await requireEnabled(rootGeneration)
      tries.take()
      const { nonce, otp } = await rootGeneration.begin(body.otp || undefined)
      return answer(progress(nonce, body.otp ? {} : { otp }))
    },
  })

const cancel = ({ path }: Base) =>
  endpoint({
    method: 'DELETE',
    path: `${path}/attempt`,
    access: 'public',
    about: 'Ends an attempt to generate a root token.',
    body: noFields,
    answers: empty,
    async run({ context: { rootGeneration, tries } }) {
      if ((await rootGeneration.state()).nonce === undefined) return undefined
      tries.take()
      await rootGeneration.cancel()
      return undefined
    },
  })

const update = ({ path, answers, answer }: Base) =>
  endpoint({
    method: 'POST',
    path: `${path}/update`,
    access: 'public',
    about: 'Gives the recovery secret and answers with the root token, XORed with the OTP of the attempt.',
    body: Type.Object({
      key: text({ about: 'The recovery secret, as `strongroom recovery-secret` printed it.' }),
      nonce: text({ about: 'The nonce of the attempt.' }),
      ttl: duration({ about: 'How long the root token lives; one hour when absent, 768h at most.' }),
    }),
    answers,
    async run({ context: { rootGeneration, tries }, body }) {
      const { nonce = '', ttl = rootTtlSeconds } = body
      // As sys/unseal does.
      const key = body.key?.trim()
      if (!key) throw badRequest("'key' must be specified in request body as JSON")
      if (ttl < 1 || ttl > systemTtlSeconds) throw badRequest('ttl must be 1s to 768h')
      await requireEnabled(rootGeneration)
      tries.take()
      return answer(progress(nonce, { token: await rootGeneration.complete(key, nonce, ttl) }))
    },
  })

export const readRootGeneration = read(older)
export const beginRootGeneration = begin(older)
export const cancelRootGeneration = cancel(older)
export const updateRootGeneration = update(older)
export const readRootTokenGeneration = read(newer)
export const beginRootTokenGeneration = begin(newer)
export const cancelRootTokenGeneration = cancel(newer)
export const updateRootTokenGeneration = update(newer)

/** Read from the cache, so that unauthenticated requests cost nothing while it is off. @throws ApiError 400 */
async function requireEnabled(generation: { state(): Promise<{ readonly enabled: boolean }> }): Promise<void> {
  if ((await generation.state()).enabled) return
  throw badRequest('generate-root is off: strongroom recovery-secret makes the secret that it asks for')
}
