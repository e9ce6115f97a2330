import { Type } from 'typebox'
import { bare, titled } from '../../answers.ts'
import { Answer, type Data } from '../../route.ts'
import { noFields, type Status, statusEndpoint } from '../context.ts'
import { apiVersion, product } from '../version.ts'

/** The members of sealStatus. */
export const sealStatusAnswer = titled('SealStatus', {
  type: Type.String(),
  initialized: Type.Boolean(),
  sealed: Type.Boolean(),
  t: Type.Integer(),
  n: Type.Integer(),
  progress: Type.Integer(),
  nonce: Type.String(),
  version: Type.String(),
  build_date: Type.String(),
  migration: Type.Boolean(),
  cluster_name: Type.Optional(Type.String()),
  cluster_id: Type.Optional(Type.String()),
  recovery_seal: Type.Boolean(),
  storage_type: Type.String(),
  product: Type.String(),
  product_version: Type.String(),
})

/** The answer of sys/seal-status and sys/unseal. A single secret unseals the node, so there is no partial progress. */
export function sealStatus(status: Status, sealed = status.sealed()): Data {
  return {
    type: 'pkcs11',
    initialized: true,
    sealed,
    t: 1,
    n: 1,
    progress: 0,
    nonce: '',
    version: apiVersion,
    build_date: '',
    migration: false,
    // A sealed worker does not know the cluster, even when its answer says that it has just been unsealed.
    ...(status.clusterId === '' ? {} : { cluster_name: status.clusterName, cluster_id: status.clusterId }),
    recovery_seal: false,
    storage_type: 'mysql',
    ...product,
  }
}

export const readSealStatus = statusEndpoint({
  method: 'GET',
  path: 'seal-status',
  access: 'public',
  audited: false,
  about: 'Whether this node is sealed.',
  body: noFields,
  answers: bare(sealStatusAnswer),
  run: ({ context }) => new Answer({ bare: sealStatus(context.status) }),
})
