import { Type } from 'typebox'
import { bare, mapOf, timestamp } from '../../../answers.ts'
import { Answer } from '../../../route.ts'
import { endpoint, noFields } from '../../context.ts'

const inFlightRequest = Type.Object({
  start_time: timestamp,
  client_remote_address: Type.String(),
  request_path: Type.String(),
  request_method: Type.String(),
  client_id: Type.String(),
})

export const listInFlight = endpoint({
  method: 'GET',
  path: 'in-flight-req',
  access: 'sudo',
  about: 'The requests that this node is answering, over all its workers, by their id.',
  body: noFields,
  answers: bare(mapOf(inFlightRequest)),
  async run({ context }) {
    const requests = await context.inFlight()
    const shown = requests.map(({ id, startedAt, client, path, method, clientId }) => [
      id,
      {
        start_time: new Date(startedAt).toISOString(),
        client_remote_address: client,
        request_path: path,
        request_method: method,
        client_id: clientId,
      },
    ])
    return new Answer({ bare: Object.fromEntries(shown) })
  },
})
