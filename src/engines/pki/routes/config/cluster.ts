import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { Cluster } from '../../authority/authority.ts'
import { clustersTable } from '../../authority/tables.ts'
import { isUrl } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'

const cluster = data(Type.Object({ path: Type.String(), aia_path: Type.String() }))

const describe = ({ path, aiaPath }: Cluster): Data => ({ path, aia_path: aiaPath })

const nothing = Type.Object({})

export const readCluster = route<PkiContext, typeof nothing>({
  method: 'GET',
  path: 'config/cluster',
  access: 'token',
  about: 'The URLs of the mount at this site.',
  body: nothing,
  answers: cluster,
  run: async ({ context, mount }) => describe((await context.authorities.of(mount)).cluster),
})

const body = Type.Object({
  path: text({ about: 'URL of this mount at this site, for {{cluster_path}}.' }),
  aia_path: text({ about: 'URL of the authority information at this site, for {{cluster_aia_path}}.' }),
})
type ClusterCall = Call<PkiContext, typeof body>

async function write({ context, mount, body, warn }: ClusterCall): Promise<Data> {
  const { path, aia_path: aiaPath } = body
  checkUrl('path', path)
  checkUrl('aia_path', aiaPath)
  const table = context.database.table(clustersTable)
  const { site } = context.authorities
  const { authority, pointsChanged } = await context.authorities.change(mount, async (tx) => {
    const row = await table.find(tx, { mount: mount.uuid, site })
    const changes = { ...(path === undefined ? {} : { path }), ...(aiaPath === undefined ? {} : { aiaPath }) }
    if (row === undefined) await table.insert(tx, { mount: mount.uuid, site, path: '', aiaPath: '', ...changes })
    else await table.update(tx, row, changes)
    return { result: undefined }
  })
  if (pointsChanged) for (const warning of await context.crls.rebuild(mount)) warn(warning)
  return describe(authority.cluster)
}

/** @throws ApiError 400 */
function checkUrl(field: string, value: string | undefined): void {
  if (value && !isUrl(value)) {
    throw badRequest(`invalid, non-URL ${field} given to cluster: ${value}`)
  }
}

export const writeCluster = route<PkiContext, typeof body>({
  method: 'POST',
  path: 'config/cluster',
  access: 'token',
  about: 'Sets the URLs of the mount at this site; absent fields stay unchanged.',
  body,
  answers: cluster,
  run: write,
})
