import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'
import { strongroom } from './cli.ts'

const verbs = [
  'server',
  'init',
  'status',
  'migrate',
  'config check',
  'kek rotate',
  'kek status',
  'kek adopt',
  'kek destroy',
]

test('every verb explains itself, and none takes a PIN as an argument', async () => {
  const all = await Promise.all(verbs.map((verb) => strongroom([...verb.split(' '), '--help'])))
  for (const [index, { code, stdout, stderr }] of all.entries()) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`Usage: strongroom ${verbs[index]}`)
    expect(stdout).not.toMatch(/--pin/)
  }
})

test.each([
  [[]],
  [['serve']],
  [['server', '--pin', '1234']],
  [['init', '--kek', 'magic']],
  [['init', '--custodians', '1']],
  [['kek', 'rotate', '--purpose', 'all']],
  [['kek', 'destroy']],
])('wrong usage exits with 2 and says nothing on standard output: %j', async (args) => {
  const { code, stdout, stderr } = await strongroom(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).not.toBe('')
})

describe('config check', () => {
  const example = new URL('../../docs/strongroom.example.yaml', import.meta.url)

  test('finds what is missing on this machine, all at once', async () => {
    const { code, stdout, stderr } = await strongroom(['config', 'check', '--config', example.pathname])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('/etc/strongroom/pin')
  })

  test('shows the whole effective configuration without secrets', async () => {
    const file = join(runDirectory(), 'check.yaml')
    writeFileSync(
      file,
      `database: { url: 'mysql://u:geheim@h/s' }\npkcs11: { library: l, token: { slot: 0 }, pin: { environment: HSM_PIN } }`,
    )
    const environment = { HSM_PIN: 'geheim-7391', STRONGROOM_WORKERS: '3', STRONGROOM_CONFIG: file }
    expect(await strongroom(['config', 'check'], environment)).toMatchObject({
      code: 0,
      stdout: 'the configuration is good\n',
      stderr: '',
    })
    const { code, stdout, stderr } = await strongroom(['config', 'check', '--show'], environment)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('workers: 3')
    expect(stdout).toContain('url: mysql://u@h/s')
    expect(stdout).not.toContain('geheim')
  })

  test('proves that certificate and key can be read', async () => {
    const file = join(runDirectory(), 'tls.yaml')
    const text = readFileSync(example, 'utf8').replace('/etc/strongroom/tls.pem', '/dev/null')
    writeFileSync(file, text.replace('file: /etc/strongroom/pin', 'prompt: true').replace(/passwordFile.*/, ''))
    const { code, stderr } = await strongroom(['config', 'check', '--config', file])
    expect(code).toBe(2)
    expect(stderr).toContain('listeners.0.tls: ')
  })
})

describe('status', () => {
  test.each([
    [200, { sealed: false, version: '1.13.0' }, 0, ''],
    [200, { sealed: true }, 2, ''],
    [503, { errors: ['no worker of this node is healthy'] }, 1, 'no worker of this node'],
    [200, { hello: 1 }, 1, 'no status'],
  ])('of a node that answers %i %j exits with %i', async (status, body, code, words) => {
    const server = createServer((_, response) => response.writeHead(status).end(JSON.stringify(body)))
    server.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const ran = await strongroom(['status'], { STRONGROOM_ADDRESS: `http://127.0.0.1:${port}` })
    expect(ran.code).toBe(code)
    expect(ran.stderr).toContain(words)
    server.close()
  })

  test('of a node that does not answer exits with 1', async () => {
    const { code, stderr } = await strongroom(['status', '--address', 'http://localhost:1'])
    expect(code).toBe(1)
    expect(stderr).toContain('ECONNREFUSED')
  })
})
