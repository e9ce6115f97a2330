import { boolean, text } from '../../../../field.ts'
import { nameFields } from '../../roles/request.ts'

/** The fields of every request for a leaf. */
export const leafFields = {
  ...nameFields,
  format: text({ about: 'pem, der or pem_bundle; pem when absent.' }),
  remove_roots_from_chain: boolean({ about: 'Whether self-signed certificates are left out of ca_chain.' }),
}

export const privateKeyFormat = text({ about: 'pkcs8, or anything else for the form of the key type.' })
