import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { done, enveloped, expectData, expectRefused, useNode } from '../../api/node.ts'
import { openSql } from '../../attack/sql.ts'
import type { Reply } from '../../support/client.ts'
import { createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from './authority.ts'

const node = useNode({ workers: 2 })

const operations = [
  'tidy_cert_store',
  'tidy_revoked_certs',
  'tidy_revoked_cert_issuer_associations',
  'tidy_expired_issuers',
  'tidy_move_legacy_ca_bundle',
  'tidy_revocation_queue',
  'tidy_cross_cluster_revoked_certs',
]
const nothingSelected = Object.fromEntries(operations.map((name) => [name, false]))
const defaults = {
  ...nothingSelected,
  ...{ safety_buffer: 259_200, issuer_safety_buffer: 31_536_000, revocation_queue_safety_buffer: 172_800 },
  ...{ pause_duration: '0s', page_size: 1000 },
}
const enable = `Enable at least one tidy operation to be run (${operations.join(' / ')}).`
const started =
  "Tidy operation successfully started. Any information from the operation will be printed to Strongroom's server logs."

const status = async (pki: TestAuthority) => dataOf(await done(pki.get('tidy-status')))

async function finished(pki: TestAuthority): Promise<Record<string, unknown>> {
  for (;;) {
    const now = await status(pki)
    if (now.state !== 'Running' && now.state !== 'Cancelling') return now
    await delay(50)
  }
}

const expectBegun = (reply: Reply): void => {
  expect(reply.status, reply.text).toBe(202)
  expect(reply.body).toEqual(enveloped(null, [started]))
}

/** An authority with a leaf that has ended a second ago, and its serial number. */
async function withEndedLeaf() {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r')
  const leaf = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1s' })))
  await delay(3000)
  return { pki, serial: String(leaf.serial_number) }
}

describe('tidy', () => {
  test('removes expired entries, with the fields of its run in tidy-status', async () => {
    const { pki, serial } = await withEndedLeaf()
    const before = Date.now()
    const wanted = {
      tidy_cert_store: true,
      tidy_revocation_list: 'true',
      safety_buffer: '1s',
      pause_duration: '1500ms',
    }
    expectBegun(await pki.post('tidy', wanted))
    const { internal_backend_uuid: id, time_started: began, time_finished: end, ...data } = await finished(pki)
    expect(data).toEqual({
      ...{ ...defaults, tidy_cert_store: true, tidy_revoked_certs: true, safety_buffer: 1, pause_duration: '1.5s' },
      ...{ state: 'Finished', error: null, message: null, last_auto_tidy_finished: null },
      ...{ cert_store_deleted_count: 1, cert_store_mismatched_count: 0, revoked_cert_deleted_count: 0 },
      ...{ missing_issuer_cert_count: 0, revocation_queue_deleted_count: 0, cross_revoked_cert_deleted_count: 0 },
      ...{ current_cert_store_count: null, current_revoked_cert_count: null },
    })
    expect(Date.parse(String(began))).toBeGreaterThanOrEqual(before - 1000)
    expect(Date.parse(String(end))).toBeGreaterThanOrEqual(Date.parse(String(began)))
    await using sql = await openSql(node.server.database.url)
    expect(await sql.row('SELECT id FROM mounts WHERE path = ?', [`${pki.path}/`])).toEqual({ id })
    expect((await pki.get(`cert/${serial}`)).status).toBe(404)
  })

  test('without a selected operation does nothing, and warns', async () => {
    const pki = await createAuthority(node)
    const reply = await pki.post('tidy', { safety_buffer: '1s' })
    expect(reply.status).toBe(202)
    expect(warningsOf(reply)).toEqual([`Manual tidy requested but no tidy operations were set. ${enable}`])
    expect((await status(pki)).state).toBe('Inactive')
  })

  test('is refused while it is under way, and can be cancelled', async () => {
    const { pki } = await withEndedLeaf()
    expectBegun(await pki.post('tidy', { tidy_cert_store: true, safety_buffer: 1, pause_duration: '1h' }))
    expectData(await pki.post('tidy', { tidy_cert_store: true }), null, ['Tidy operation already in progress.'])
    const cancelled = await pki.post('tidy-cancel')
    expect([cancelled.status, dataOf(cancelled).state, warningsOf(cancelled)]).toEqual([200, 'Cancelling', []])
    expect(await finished(pki)).toMatchObject({ state: 'Cancelled', error: null })
    const again = await pki.post('tidy-cancel')
    expect([again.status, dataOf(again).state]).toEqual([200, 'Cancelled'])
    expect(warningsOf(again)).toEqual(['Tidy operation cannot be cancelled as none is currently running.'])
  })

  test.each([
    [{ safety_buffer: 0 }, 'safety_buffer must be greater than zero'],
    [{ issuer_safety_buffer: '0s' }, 'issuer_safety_buffer must be greater than zero'],
    [{ revocation_queue_safety_buffer: 0 }, 'revocation_queue_safety_buffer must be greater than zero'],
    [{ pause_duration: '-1s' }, 'received invalid, negative pause_duration'],
    [{ pause_duration: 'soon' }, 'Error parsing pause_duration: expected seconds or a duration'],
    [{ page_size: 4 }, 'page_size must be greater than five'],
    [{ safety_buffer: '-1h' }, 'safety_buffer'],
    [{ tidy_cert_store: 'perhaps' }, 'tidy_cert_store'],
    [{ page_size: 1.5 }, 'page_size'],
  ])('refuses %j: %s', async (body, text) => {
    const pki = await createAuthority(node)
    const reply = await pki.post('tidy', { tidy_cert_store: true, ...body })
    expect(reply.status).toBe(400)
    expect(errorsOf(reply)[0]).toContain(text)
    expect((await status(pki)).state).toBe('Inactive')
  })

  test('is not for those without a token', async () => {
    const pki = await createAuthority(node)
    const stranger = node.server.client('')
    for (const call of [
      stranger.post(`${pki.path}/tidy`, { tidy_cert_store: true }),
      stranger.post(`${pki.path}/tidy-cancel`),
      stranger.get(`${pki.path}/tidy-status`),
      stranger.get(`${pki.path}/config/auto-tidy`),
    ])
      expect((await call).status).toBe(403)
  })
})

test('tidy-status is null before the first run, but for the state and the mount', async () => {
  const pki = await createAuthority(node)
  const { internal_backend_uuid: id, state, ...data } = await status(pki)
  expect([state, typeof id]).toEqual(['Inactive', 'string'])
  expect(new Set(Object.values(data))).toEqual(new Set([null]))
  expectData(await pki.post('tidy-cancel'), { ...data, state, internal_backend_uuid: id }, [
    'Tidy operation cannot be cancelled as none is currently running.',
  ])
})

describe('config/auto-tidy', () => {
  const unset = {
    ...{ enabled: false, interval_duration: 43_200, ...defaults },
    ...{ maintain_stored_certificate_counts: false, publish_stored_certificate_count_metrics: false },
  }

  test('has the defaults of the specification, takes part by part, and null as the default', async () => {
    const pki = await createAuthority(node)
    expectData(await pki.get('config/auto-tidy'), unset)
    const first = { enabled: true, tidy_cert_store: true, interval_duration: '24h', pause_duration: '250ms' }
    const set = { ...unset, ...first, interval_duration: 86_400 }
    expectData(await pki.post('config/auto-tidy', first), set)
    const second = { tidy_revoked_certs: true, safety_buffer: '2s', page_size: 5 }
    const both = { ...set, tidy_revoked_certs: true, safety_buffer: 2, page_size: 5 }
    expectData(await pki.post('config/auto-tidy', second), both)
    expectData(await pki.get('config/auto-tidy'), both)
    const back = { interval_duration: null, pause_duration: null, tidy_cert_store: null }
    const cleared = { ...both, interval_duration: 43_200, pause_duration: '0s', tidy_cert_store: false }
    expectData(await pki.post('config/auto-tidy', back), cleared)
  })

  test.each([
    [{ enabled: true }, `Auto-tidy enabled but no tidy operations were requested. ${enable}`],
    [{ safety_buffer: 0 }, 'given safety_buffer must be at least one second; got: 0'],
    [{ issuer_safety_buffer: 0 }, 'given issuer_safety_buffer must be at least one second; got: 0'],
    [{ revocation_queue_safety_buffer: 0 }, 'given revocation_queue_safety_buffer must be at least one second; got: 0'],
    [{ page_size: 0 }, 'page_size must be at least 5'],
    [{ pause_duration: '-5m' }, 'received invalid, negative pause_duration'],
    [
      { publish_stored_certificate_count_metrics: true },
      'Can not publish a running storage metrics count to metrics without first maintaining that count.  Enable `maintain_stored_certificate_counts` to enable `publish_stored_certificate_count_metrics`.',
    ],
  ])('refuses %j: %s', async (body, text) => {
    const pki = await createAuthority(node)
    expectRefused(await pki.post('config/auto-tidy', body), 400, text)
    expectData(await pki.get('config/auto-tidy'), unset)
  })

  test('refuses an invalid pause', async () => {
    const pki = await createAuthority(node)
    const reply = await pki.post('config/auto-tidy', { pause_duration: '1 year' })
    expect([reply.status, errorsOf(reply)[0]]).toEqual([
      400,
      expect.stringContaining('unable to parse given pause_duration: '),
    ])
  })

  test('maintains counts of stored entries, and publishes them as metrics', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r', { generate_lease: true })
    const counting = { maintain_stored_certificate_counts: true, publish_stored_certificate_count_metrics: true }
    await done(pki.post('config/auto-tidy', counting))
    const issued = await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))
    await done(node.root.post('sys/leases/revoke', { lease_id: issued.string('lease_id'), sync: true }))
    const { current_cert_store_count, current_revoked_cert_count, internal_backend_uuid: id } = await status(pki)
    expect([current_cert_store_count, current_revoked_cert_count]).toEqual([2, 1])
    const metrics = (await done(node.root.get('sys/metrics?format=prometheus'))).text
    const name = `vault_secrets_pki_${String(id).replaceAll('-', '_')}_total`
    expect(metrics).toMatch(new RegExp(`${name}_certificates_stored(?:\\{\\})? 2\\n`))
    expect(metrics).toMatch(new RegExp(`${name}_revoked_certificates_stored(?:\\{\\})? 1\\n`))
  })
})
