import { endpoint, noFields } from '../context.ts'
import { apiVersion } from '../version.ts'

export const listVersionHistory = endpoint({
  method: 'LIST',
  path: 'version-history',
  access: 'token',
  about: 'The API level of this cluster since it was made.',
  body: noFields,
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
