import { Type } from 'typebox'
import { keyInfo, timestamp } from '../../answers.ts'
import { endpoint, noFields } from '../context.ts'
import { apiVersion } from '../version.ts'

const installation = Type.Object({
  previous_version: Type.Null(),
  timestamp_installed: timestamp,
  build_date: Type.String(),
})

export const listVersionHistory = endpoint({
  method: 'LIST',
  path: 'version-history',
  access: 'token',
  about: 'The API level of this cluster since it was made.',
  body: noFields,
  answers: keyInfo(installation),
  run: ({ context }) => ({
    keys: [apiVersion],
    key_info: {
      [apiVersion]: {
        previous_version: null,
        timestamp_installed: new Date(context.status.createdAt).toISOString(),
        build_date: '',
      },
    },
  }),
})
