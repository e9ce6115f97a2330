import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { TransitContext } from '../../context.ts'
import { readChain } from '../../input/chain.ts'
import { certifiedVersionField } from '../../input/fields.ts'
import { withCertifiableRing } from '../../ring/certifiable.ts'
import { versionToCertify } from '../../ring/versions.ts'

const certified = Type.Object({ name: Type.String(), type: Type.String(), certificate_chain: Type.String() })

const body = Type.Object({
  version: certifiedVersionField,
  certificate_chain: text({ about: 'PEM certificates: the key’s first, then those of its issuers.' }),
})

const failed = 'failed to persist certificate chain'

async function setChain(call: Call<TransitContext, typeof body>): Promise<Data> {
  const { context, mount, params, body } = call
  const { before, version, certificateChain } = await withCertifiableRing(call, async (ring) => {
    const { version, material } = versionToCertify(ring, body.version ?? 0, failed)
    const { publicKey } = await context.material(material)
    return { before: ring, version, certificateChain: readChain(body.certificate_chain, publicKey) }
  })
  const { name = '' } = params
  await context.changes.change(mount, name, `key with provided name '${name}' not found`, async (tx, ring) => {
    if (ring.key.id !== before.key.id || !ring.versions.has(version)) throw badRequest(`${failed}: no such key version`)
    await context.versions.update(tx, ring, version, { certificateChain })
  })
  return { name: before.key.name, type: before.key.type, certificate_chain: certificateChain }
}

export const setCertificate = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/set-certificate',
  access: 'token',
  about: 'Stores the certificate chain of a key version.',
  body,
  answers: data(certified),
  run: setChain,
})
