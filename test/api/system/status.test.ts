import { describe, expect, test } from 'vitest'
import { done, expectRefused, useNode, uuid } from '../node.ts'

const node = useNode()
/** Nobody: no token at all. */
const guest = () => node.server.client('')

describe('sys/health', () => {
  test('answers without a token, bare', async () => {
    const reply = await guest().get('sys/health')
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({
      initialized: true,
      sealed: false,
      standby: false,
      performance_standby: false,
      replication_performance_mode: 'disabled',
      replication_dr_mode: 'disabled',
      server_time_utc: expect.any(Number),
      version: '1.13.0',
      cluster_name: 'strongroom',
      cluster_id: expect.stringMatching(uuid),
      hsm: 'ready',
      database: 'ready',
      product: 'strongroom',
      product_version: '0.1.0',
    })
  })

  test('answers HEAD, which hvac sends, with the status alone', async () => {
    const reply = await guest().call('HEAD', 'sys/health?activecode=299')
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 299, text: '' })
  })

  test('takes the codes that Go clients send, and what they misspell', async () => {
    const query =
      'activecode=299&sealedcode=299&standbycode=299&uninitcode=299&drsecondarycode=299&performancestandbycode=299&removedcode=299&haunhealhty=299&standbyok=true'
    expect((await guest().get(`sys/health?${query}`)).status).toBe(299)
  })

  test('answers 204 without a body where a load balancer wants that', async () => {
    const reply = await guest().get('sys/health?activecode=204')
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
  })

  test.each(['abc', '99', '100', '199', '600', '-200', ''])('refuses the code %j', async (code) => {
    expectRefused(await guest().get(`sys/health?activecode=${code}`), 400)
  })

  test.each(['sealedcode', 'standbycode', 'uninitcode', 'drsecondarycode', 'performancestandbycode'])(
    'refuses a bad %s too, though it is not the one that counts',
    async (name) => {
      expectRefused(await guest().get(`sys/health?${name}=x`), 400)
    },
  )

  test.each(['POST', 'DELETE', 'LIST', 'PATCH'])('is not for %s', async (verb) => {
    expect((await node.root.call(verb, 'sys/health')).status).toBe(405)
  })
})

test('sys/seal-status answers without a token, with a version that Terraform can parse', async () => {
  const reply = await guest().get('sys/seal-status')
  expect(reply.status).toBe(200)
  expect(reply.body).toEqual({
    type: 'pkcs11',
    initialized: true,
    sealed: false,
    t: 1,
    n: 1,
    progress: 0,
    nonce: '',
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    build_date: '',
    migration: false,
    cluster_name: 'strongroom',
    cluster_id: expect.stringMatching(uuid),
    recovery_seal: false,
    storage_type: 'mysql',
    product: 'strongroom',
    product_version: '0.1.0',
  })
})

test('sys/leader and sys/init answer without a token', async () => {
  expect((await guest().get('sys/leader')).body).toEqual({
    ha_enabled: false,
    is_self: false,
    active_time: '0001-01-01T00:00:00Z',
    leader_address: '',
    leader_cluster_address: '',
    performance_standby: false,
    performance_standby_last_remote_wal: 0,
  })
  expect((await guest().get('sys/init')).body).toEqual({ initialized: true })
  expectRefused(await node.root.post('sys/init', {}), 400, 'Vault is already initialized')
})

test('a wrong token does not keep the status from answering', async () => {
  const client = node.server.client('hvs.nonsense')
  for (const path of ['health', 'seal-status', 'leader', 'init']) await done(client.get(`sys/${path}`))
})
