import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { expect, test } from 'vitest'
import { done, fresh, hello, useNode } from '../api/node.ts'
import { readMetric } from '../support/metric.ts'
import { enable, type TestDevice } from './device.ts'

const node = useNode()

const refusal = {
  status: 500,
  body: { errors: ['1 error occurred:\n\t* no audit device could be written, so nothing was done\n\n'] },
}

/** The request must be refused, and must not have been carried out once the device works again. */
async function expectClosed(device: TestDevice, mend: () => void): Promise<void> {
  const name = fresh('k')
  for (const reply of [
    await node.root.post(`transit/keys/${name}`),
    await node.root.get('sys/mounts'),
    await node.root.delete(`sys/audit/${device.path}`),
    await node.server.client('hvs.nobody').get('sys/mounts'),
    await node.server.client('').get('sys/internal/ui/mounts'),
    await node.root.post('sys/mounts/x', '{'),
  ]) {
    expect({ status: reply.status, body: reply.body }).toEqual(refusal)
  }
  for (const path of ['sys/health', 'sys/seal-status', 'sys/leader', 'sys/init']) {
    expect((await node.root.get(path)).status, path).toBe(200)
  }
  mend()
  expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  expect(device.of(`transit/keys/${name}`)).toHaveLength(2)
  await device.disable()
  expect((await node.root.get('sys/audit')).body).toMatchObject({ data: {} })
}

test('a deleted file is made anew, and nothing is refused', async () => {
  const device = await enable(node.root)
  rmSync(device.file)
  const key = await node.key()
  expect(device.of(`transit/keys/${key}`)).toHaveLength(2)
  await device.disable()
})

test('with its directory gone nothing is done and nothing is answered', async () => {
  const device = await enable(node.root)
  rmSync(device.directory, { recursive: true })
  await expectClosed(device, () => mkdirSync(device.directory))
})

test('with the disk full nothing is done and nothing is answered', async () => {
  const device = await enable(node.root)
  rmSync(device.file)
  symlinkSync('/dev/full', device.file)
  await expectClosed(device, () => rmSync(device.file))
})

test('with a file that cannot be written nothing is done and nothing is answered', async () => {
  const device = await enable(node.root)
  rmSync(device.file)
  mkdirSync(device.file)
  await expectClosed(device, () => rmSync(device.file, { recursive: true }))
})

test('a request refused for want of a device is counted', async () => {
  const device = await enable(node.root)
  const failures = () => readMetric(node.root, 'vault_audit_log_request_failure')
  const before = await failures()
  rmSync(device.directory, { recursive: true })
  for (let i = 0; i < 3; i++) expect((await node.root.get('sys/mounts')).status).toBe(500)
  mkdirSync(device.directory)
  expect(await failures()).toBe(before + 3)
  await device.disable()
})

test('the server says once in its log which device fails, and that it works again', async () => {
  const device = await enable(node.root)
  const said = (text: string) => node.server.output().split(`"file":"${device.file}","msg":"${text}"`).length - 1
  rmSync(device.directory, { recursive: true })
  for (let i = 0; i < 3; i++) await node.root.get('sys/mounts')
  // A worker's log reaches the test through two pipes.
  await expect.poll(() => said('an audit device cannot be written')).toBe(1)
  mkdirSync(device.directory)
  await done(node.root.get('sys/mounts'))
  await expect.poll(() => said('an audit device can be written again')).toBe(1)
  await device.disable()
})

test('of a flood of refused requests the log has the first as lines, and the number of the others', async () => {
  const device = await enable(node.root)
  // Longer than the second whose others are told at its end.
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const already = node.server.output().length
  rmSync(device.directory, { recursive: true })
  const replies = await Promise.all(Array.from({ length: 200 }, () => node.root.get('sys/mounts')))
  expect(replies.every(({ status }) => status === 500)).toBe(true)
  mkdirSync(device.directory)
  const logged = () => node.server.output().slice(already)
  const lines = () => logged().split('"msg":"a request could not be served"').length - 1
  const others = () =>
    [...logged().matchAll(/"times":(\d+),"msg":"a request could not be served, more often/g)].map(([, n]) => Number(n))
  await expect.poll(() => lines() + others().reduce((sum, each) => sum + each, 0), { timeout: 20_000 }).toBe(200)
  expect(lines()).toBeLessThan(200)
  await device.disable()
}, 30_000)

test('with one device that works the server goes on, and the other has a gap and no break when it is back', async () => {
  const good = await enable(node.root)
  const bad = await enable(node.root)
  const away = `${bad.directory}-away`
  const last = bad.lines().at(-1)?.chain
  renameSync(bad.directory, away)
  rmSync(`${away}/audit.log`)
  const key = await node.key()
  expect(good.of(`transit/keys/${key}`)).toHaveLength(2)
  mkdirSync(bad.directory)
  const encrypted = await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello }))
  expect(encrypted.status).toBe(200)
  const [first] = bad.lines()
  expect(first?.chain.sequence).toBe((last?.sequence ?? 0) + 3)
  await good.disable()
  await bad.disable()
})

test('a device that this worker cannot write is never enabled', async () => {
  const before = (await node.root.get('sys/audit')).body
  for (const [options, text] of [
    [{ file_path: '/nowhere/at/all/audit.log' }, 'audit backend failed test message: ENOENT'],
    [{ file_path: '/dev/full' }, 'audit backend failed test message: ENOSPC'],
    [{ file_path: '/tmp' }, 'audit backend failed test message: EISDIR'],
    [{}, 'file_path is required'],
    [{ file_path: 'audit.log' }, 'absolute path'],
    [{ file_path: '/tmp/x', format: 'jsonx' }, 'format must be json'],
    [{ file_path: '/tmp/x', mode: '0755' }, 'option mode'],
    [{ file_path: '/tmp/x', mode: '-1' }, 'option mode'],
    [{ file_path: '/tmp/x', log_raw: 'maybe' }, 'option log_raw must be true or false'],
    [{ file_path: '/tmp/x', prefix: 'a\nb' }, 'option prefix'],
    [{ file_path: '/tmp/x', prefix: '{' }, 'option prefix'],
  ] as const) {
    const reply = await node.root.post('sys/audit/never', { type: 'file', options })
    expect([reply.status, reply.text], JSON.stringify(options)).toEqual([400, expect.stringContaining(text)])
  }
  for (const [type, text] of [
    ['syslog', 'audit devices of type syslog are not available on this server: use a file or a socket'],
    ['other', 'unknown audit backend type: other'],
    ['', 'audit backend type must be specified as a string'],
  ]) {
    const reply = await node.root.post('sys/audit/never', { type, options: { file_path: '/tmp/x' } })
    expect([reply.status, reply.body]).toEqual([400, { errors: [text] }])
  }
  expect((await node.root.get('sys/audit')).body).toMatchObject({ data: (before as { data: unknown }).data as object })
})
