import { Answer, type Data } from '../../route.ts'
import { noFields, type Status, statusEndpoint } from '../context.ts'
import { apiVersion, product } from '../version.ts'

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
  run: ({ context }) => new Answer({ bare: sealStatus(context.status) }),
})
