import { anyObject, bare } from '../../answers.ts'
import { describeApi } from '../../request/openapi/document.ts'
import { Answer } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'
import { apiVersion } from '../version.ts'

const documents = new WeakMap<SystemContext, Buffer>()

/** Serialised once: callers need no token, so a document per request, or a copy of it, would invite attacks. */
function specification(context: SystemContext): Buffer {
  const document = documents.get(context) ?? Buffer.from(JSON.stringify(describeApi(context.sections(), apiVersion)))
  documents.set(context, document)
  return document
}

export const readOpenApi = endpoint({
  method: 'GET',
  path: 'internal/specs/openapi',
  access: 'public',
  about: 'Every path of this server as an OpenAPI 3.0 document; engines stand under a parameter for their mount.',
  body: noFields,
  answers: bare(anyObject),
  run: ({ context }) => new Answer({ raw: { type: 'application/json', body: specification(context) } }),
})
