import { readFileSync, writeFileSync } from 'node:fs'
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
  'kek component',
  'root-token',
  'accept-restore',
  'recovery-secret',
]

test('every verb explains itself, and none takes a PIN as an argument', async () => {
  const all = await Promise.all(verbs.map((verb) => strongroom([...verb.split(' '), '--help'])))
  for (const [index, { code, stdout, stderr }] of all.entries()) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`Usage: strongroom ${verbs[index]}`)
    expect(stdout).not.toMatch(/--pin/)
  }
}, 60_000)

test('help is given for a verb of a verb too', async () => {
  expect((await strongroom(['help', 'kek', 'adopt'])).stdout).toContain('Usage: strongroom kek adopt')
  expect((await strongroom(['help', 'kek'])).stdout).toContain('Usage: strongroom kek [')
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

test.each(['2026-11-21 10:00', '2026-02-30T10:00:00Z', '2026-11-21', '2026-11-21T10:00:00', '1763719200', 'noon'])(
  'audit verify refuses --from %s, which is no time in RFC 3339',
  async (from) => {
    const { code, stderr } = await strongroom(['audit', 'verify', '--from', from, 'none.log'])
    expect(code).toBe(2)
    expect(stderr).toContain('It must be a time like 2026-11-21T10:00:00Z')
  },
)

describe('config check', () => {
  const example = new URL('../../docs/strongroom.example.yaml', import.meta.url)

  test('finds what is missing on this machine, all at once', async () => {
    const { code, stdout, stderr } = await strongroom(['config', 'check', '--config', example.pathname])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const missing = ['tls.pem', 'tls.key', 'clients.pem', 'database-ca.pem', 'database.pem', 'database.key']
    const named = ['pin', 'database-password', ...missing].map((name) => `/etc/strongroom/${name}`)
    const lines = stderr.trim().split('\n').slice(1)
    expect(lines.map((line) => /'(.*)'$/.exec(line)?.[1])).toEqual(expect.arrayContaining(named))
    expect(lines).toHaveLength(named.length + 1)
    expect(stderr).toContain('  pkcs11Libraries.0.library: ENOENT')
  })

  test('shows the whole effective configuration without secrets', async () => {
    const file = join(runDirectory(), 'check.yaml')
    writeFileSync(
      file,
      `database: { url: 'mysql://u:geheim@localhost/s' }\npkcs11: { library: l, token: { slot: 0 }, pin: { environment: HSM_PIN } }`,
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
    expect(stdout).toContain('url: mysql://u@localhost/s')
    expect(stdout).not.toContain('geheim')
  })

  test('proves that certificate and key belong together', async () => {
    const file = join(runDirectory(), 'tls.yaml')
    const text = readFileSync(example, 'utf8')
      .replaceAll(/\/etc\/strongroom\/[a-z-]+\.(pem|key)/g, '/dev/null')
      .replace('/usr/lib/hsm1/', '')
    writeFileSync(file, text.replace('file: /etc/strongroom/pin', 'prompt: true').replace(/passwordFile.*/, ''))
    const { code, stderr } = await strongroom(['config', 'check', '--config', file])
    expect(code).toBe(2)
    expect(stderr).toContain('listeners.0.tls: ')
  })
})
