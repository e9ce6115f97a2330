import { Type } from 'typebox'
import { boolean, duration, integer } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { TransitContext } from '../../context.ts'
import { hmacInHsmOnlyField } from '../../input/fields.ts'
import { checkManaged } from '../../input/managedkey.ts'
import { describeInventory, keyAnswer } from '../../ring/describe.ts'
import { managedType } from '../../ring/managedtype.ts'
import { configure } from '../../ring/rules.ts'

const body = Type.Object({
  min_decryption_version: integer({ about: 'The lowest version that decrypts and verifies.' }),
  min_encryption_version: integer({ about: 'The lowest version that encrypts and signs; 0 means the latest.' }),
  deletion_allowed: boolean({ about: 'Whether the key may be deleted.' }),
  exportable: boolean({ about: 'true allows exporting the key; cannot be undone.' }),
  allow_plaintext_backup: boolean({ about: 'true allows backing up the key; cannot be undone.' }),
  hmac_in_hsm_only: hmacInHsmOnlyField,
  auto_rotate_period: duration({ about: 'Period of automatic rotation; 0 is never, absent leaves it unchanged.' }),
})

type ConfigCall = Call<TransitContext, typeof body>

async function config({ context, mount, params, body, warn }: ConfigCall): Promise<Data> {
  const { name = '' } = params
  const missing = `no existing key named ${name} could be found`
  let warnings: readonly string[] = []
  const configured = await context.changes.configure(mount, name, missing, (key) => {
    if (key.type === managedType) checkManaged(body)
    const wanted = configure(key, body)
    warnings = wanted.warnings
    return wanted.changes
  })
  for (const text of warnings) warn(text)
  return describeInventory(context, configured)
}

export const configureKey = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/config',
  access: 'token',
  about: 'Changes the settings of a key, all or none.',
  body,
  answers: keyAnswer,
  run: config,
})
