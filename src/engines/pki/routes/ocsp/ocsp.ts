import { after } from '../../../../after.ts'
import { bytes } from '../../../../answers.ts'
import { Answer, type Caching, type Route, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import type { Scope } from '../../crl/tables.ts'
import { noFields } from '../../input/page.ts'
import type { SignedAnswer } from '../../ocsp/prepared.ts'
import type { OcspReply } from '../../ocsp/responder.ts'
import { decodeRequest } from './encoding.ts'

type OcspRoute = Route<PkiContext, typeof noFields>

const requestType = 'application/ocsp-request'
const responseType = 'application/ocsp-response'
/** Much more than a request may have, so that a request just over the limit gets an OCSP answer, not an HTTP error. */
const longestBody = 64 * 1024
const noRequest = Buffer.alloc(0)

const answerOf = ({ status, body }: OcspReply, caching?: Caching): Answer =>
  new Answer({ status, raw: { type: responseType, body }, ...(caching ? { caching } : {}) })

/** An answer may be cached until there is a newer one here (RFC 5019 section 6). */
function cachingOf({ thisUpdate, nextUpdate, refreshAt, tag }: SignedAnswer, now: number): Caching | undefined {
  if (nextUpdate === undefined) return undefined
  const until = now < refreshAt ? refreshAt : nextUpdate
  return { lastModified: new Date(thisUpdate), etag: tag, maxAgeSeconds: (until - now) / 1000 }
}

const inBody = (path: string, scope: Scope, about: string): OcspRoute =>
  route<PkiContext, typeof noFields>({
    method: 'POST',
    path,
    access: 'public',
    about,
    body: noFields,
    bytes: { type: requestType, maxBytes: longestBody },
    answers: bytes(responseType),
    run: ({ context, mount, bytes }) => after(context.ocsp.answer(mount, bytes, scope), (reply) => answerOf(reply)),
  })

const inPath = (path: string, scope: Scope, about: string): OcspRoute =>
  route<PkiContext, typeof noFields>({
    method: 'GET',
    path: `${path}/:request**`,
    access: 'public',
    about,
    body: noFields,
    answers: bytes(responseType),
    run: ({ context: { ocsp, clock }, mount, params }) =>
      after(ocsp.answer(mount, decodeRequest(params.request ?? '') ?? noRequest, scope), (reply) =>
        answerOf(reply, reply.answer && cachingOf(reply.answer, clock.wall())),
      ),
  })

export const postOcsp = inBody('ocsp', 'local', 'Answers an OCSP request from the revocations of this site.')
export const getOcsp = inPath('ocsp', 'local', 'Answers an OCSP request in base64 from the revocations of this site.')
export const postUnifiedOcsp = inBody(
  'unified-ocsp',
  'unified',
  'Answers an OCSP request from the revocations of every site.',
)
export const getUnifiedOcsp = inPath(
  'unified-ocsp',
  'unified',
  'Answers an OCSP request in base64 from the revocations of every site.',
)
