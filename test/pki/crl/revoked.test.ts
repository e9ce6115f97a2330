import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import { runDirectory } from '../../support/directory.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { fetchRaw, numberOf, textOf } from './reading.ts'

const node = useNode({ workers: 2 })

async function createIssuing(): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('web')
  return pki
}

const issue = async (pki: TestAuthority): Promise<Answer> =>
  dataOf(await done(pki.post('issue/web', { common_name: 'host.example' })))

const revoke = (pki: TestAuthority, leaf: Answer) => done(pki.post('revoke', { serial_number: leaf.serial_number }))

const listed = (text: string, leaf: Answer): boolean =>
  text.includes(`Serial Number: ${String(leaf.serial_number).replaceAll(':', '').toUpperCase()}`)

/** openssl's verdict on the leaf under the authority's list. */
async function verifies(pki: TestAuthority, leaf: Answer): Promise<string> {
  const directory = mkdtempSync(join(runDirectory(), 'verify-'))
  const file = (name: string, text: unknown): string => {
    writeFileSync(join(directory, name), String(text))
    return join(directory, name)
  }
  const list = (await fetchRaw(node, `${pki.path}/crl/pem`)).body
  const [ca, crl, end] = [file('ca', leaf.issuing_ca), file('crl', list), file('leaf', leaf.certificate)]
  try {
    execFileSync('openssl', ['verify', '-crl_check', '-CAfile', ca, '-CRLfile', crl, end], { stdio: 'pipe' })
    return 'good'
  } catch (error) {
    return String((error as { stderr?: Buffer }).stderr)
  }
}

describe('a revocation', () => {
  test('is on the list when it is answered, and openssl obeys', async () => {
    const pki = await createIssuing()
    const [bad, good] = [await issue(pki), await issue(pki)]
    expect(await verifies(pki, bad)).toBe('good')
    await revoke(pki, bad)
    expect(await verifies(pki, bad)).toContain('certificate revoked')
    expect(await verifies(pki, good)).toBe('good')
    expect(await textOf(node, pki, 'crl/delta')).toContain('No Revoked Certificates.')
  })

  test('shares a list with those at the same time', async () => {
    const pki = await createIssuing()
    const leaves = await Promise.all(Array.from({ length: 24 }, () => issue(pki)))
    const before = numberOf(await textOf(node, pki, 'crl'))
    await Promise.all(leaves.map((leaf) => revoke(pki, leaf)))
    const text = await textOf(node, pki, 'crl')
    for (const leaf of leaves) expect(listed(text, leaf)).toBe(true)
    expect(numberOf(text) - before).toBeLessThan(24)
  })

  test('waits for the next list under auto_rebuild, and comes on a delta before', async () => {
    const pki = await createIssuing()
    await done(pki.post('config/crl', { auto_rebuild: true, enable_delta: true }))
    const [first, second] = [await issue(pki), await issue(pki)]
    await revoke(pki, first)
    expect(listed(await textOf(node, pki, 'crl'), first)).toBe(false)
    await done(pki.get('crl/rotate'))
    expect(listed(await textOf(node, pki, 'crl'), first)).toBe(true)
    await revoke(pki, second)
    await done(pki.get('crl/rotate-delta'))
    const delta = await textOf(node, pki, 'crl/delta')
    expect([listed(delta, first), listed(delta, second)]).toEqual([false, true])
    await done(pki.get('crl/rotate'))
    expect(await textOf(node, pki, 'crl/delta')).toContain('No Revoked Certificates.')
    expect(listed(await textOf(node, pki, 'crl'), second)).toBe(true)
  })

  test('is stored while lists are disabled, and listed afterwards', async () => {
    const pki = await createIssuing()
    const leaf = await issue(pki)
    await done(pki.post('config/crl', { disable: true }))
    await revoke(pki, leaf)
    expect(await textOf(node, pki, 'crl')).toContain('No Revoked Certificates.')
    await done(pki.post('config/crl', { disable: false }))
    expect(listed(await textOf(node, pki, 'crl'), leaf)).toBe(true)
  })

  test('is on the unified list too', async () => {
    const pki = await createIssuing()
    await done(pki.post('config/crl', { auto_rebuild: true, unified_crl: true }))
    const leaf = await issue(pki)
    await revoke(pki, leaf)
    await done(pki.get('crl/rotate'))
    expect(listed(await textOf(node, pki, 'unified-crl'), leaf)).toBe(true)
  })

  test('under a read-only issuer is recorded, while the list stays as it is', async () => {
    const pki = await createIssuing()
    const leaf = await issue(pki)
    await done(pki.patch('issuer/default', { usage: 'read-only' }))
    await revoke(pki, leaf)
    expect(await textOf(node, pki, 'crl')).toContain('No Revoked Certificates.')
    await done(pki.patch('issuer/default', { usage: 'crl-signing' }))
    await done(pki.get('crl/rotate'))
    expect(listed(await textOf(node, pki, 'crl'), leaf)).toBe(true)
  })
})
