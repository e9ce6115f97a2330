import { describeApi } from '../../request/openapi.ts'
import { Answer } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'
import { apiVersion } from '../version.ts'

const documents = new WeakMap<SystemContext, string>()

/** Serialised once: callers need no token, so a document per request would be an attack. */
function specification(context: SystemContext): string {
  const document = documents.get(context) ?? JSON.stringify(describeApi(context.sections(), apiVersion))
  documents.set(context, document)
  return document
}

export const readOpenApi = endpoint({
  method: 'GET',
  path: 'internal/specs/openapi',
  access: 'public',
  about: 'Every path of this server as an OpenAPI 3.1 document; engines stand under a parameter for their mount.',
  body: noFields,
  rawTypes: ['application/json'],
  run: ({ context }) => new Answer({ raw: { type: 'application/json', body: specification(context) } }),
})
