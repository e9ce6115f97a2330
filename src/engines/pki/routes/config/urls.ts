import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { absent } from '../../../../errors.ts'
import { boolean, commaList } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { Urls } from '../../authority/tables.ts'
import { changeUrls, describeUrls, noUrls, problemOf, unusedPointsOf, urlsAnswer } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'

const urlsConfig = data(Type.Object({ ...urlsAnswer, enable_templating: Type.Boolean() }))

const describe = (urls: Urls): Data => ({ ...describeUrls(urls), enable_templating: urls.templating })

export const readUrls = route<PkiContext, ReturnType<typeof Type.Object>>({
  method: 'GET',
  path: 'config/urls',
  access: 'token',
  about: 'The URLs in certificates, unless their issuer has its own.',
  body: Type.Object({}),
  answers: urlsConfig,
  async run({ context, mount }) {
    const { urls } = (await context.authorities.of(mount)).settings
    if (urls === null) throw absent()
    return describe(urls)
  },
})

const body = Type.Object({
  issuing_certificates: commaList({ about: 'URLs of the issuer’s certificate; "" removes them.' }),
  crl_distribution_points: commaList({ about: 'URLs of the list of revoked certificates; "" removes them.' }),
  ocsp_servers: commaList({ about: 'OCSP responders; "" removes them.' }),
  enable_templating: boolean({
    about: 'Whether {{issuer_id}}, {{cluster_path}}, {{cluster_aia_path}} and {{shard}} in them are expanded.',
  }),
})
type UrlsCall = Call<PkiContext, typeof body>

async function write({ context, mount, body, warn }: UrlsCall): Promise<Data> {
  const { authority, pointsChanged } = await context.authorities.change(mount, async (_tx, { settings }) => ({
    settings: { urls: changeUrls(settings.urls ?? noUrls, body, body.enable_templating) },
    result: undefined,
  }))
  const urls = authority.settings.urls ?? noUrls
  const problem = problemOf(authority, urls)
  if (problem !== undefined) warn(`issuance may fail: ${problem}`)
  if (pointsChanged) for (const warning of await context.crls.rebuild(mount)) warn(warning)
  const unused = unusedPointsOf(authority, urls)
  if (unused !== undefined) warn(unused)
  return describe(urls)
}

export const writeUrls = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'config/urls',
  access: 'token',
  about: 'Sets the URLs in certificates; absent fields stay unchanged.',
  body,
  answers: urlsConfig,
  run: write,
})
