import { Type } from 'typebox'
import { data } from '../../../answers.ts'
import { endpoint, noFields } from '../../context.ts'

const license = Type.Object({
  autoloading_used: Type.Boolean(),
  autoloaded: Type.Null(),
  persisted_autoload: Type.Null(),
})

export const readLicense = endpoint({
  method: 'GET',
  path: 'license/status',
  access: 'token',
  about: 'The license: there is none, and nothing asks for one.',
  body: noFields,
  answers: data(license),
  run: () => ({ autoloading_used: false, autoloaded: null, persisted_autoload: null }),
})
