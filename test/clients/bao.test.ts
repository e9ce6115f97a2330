import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, describe as group, test } from 'vitest'
import { fresh, hello, useNode } from '../api/node.ts'
import { strongroom } from '../commands/cli.ts'
import { runDirectory } from '../support/directory.ts'

/** OpenBao's command line, an absolute path. Where the variable is set the tests run, and fail if the program is not there. */
const bao = process.env.STRONGROOM_TEST_BAO
if (bao === undefined) console.warn('test/clients/bao.test.ts is skipped: STRONGROOM_TEST_BAO names no OpenBao program')

const node = useNode()
/** What the program keeps between its calls lies here: ~/.vault-token. */
const home = mkdtempSync(join(runDirectory(), 'bao-'))

interface Told {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs `bao ARGUMENTS` as whoever is logged in, or with a token. */
function run(args: readonly string[], { token, input = '' }: { token?: string; input?: string } = {}): Promise<Told> {
  const environment = { BAO_ADDR: node.server.url, HOME: home, PATH: process.env.PATH ?? '' }
  const { promise, resolve, reject } = Promise.withResolvers<Told>()
  const env = { ...environment, ...(token === undefined ? {} : { BAO_TOKEN: token }) }
  const child = execFile(bao ?? '', args, { env }, (error, stdout, stderr) => {
    if (error !== null && typeof error.code !== 'number') reject(error)
    else resolve({ code: Number(error?.code ?? 0), stdout, stderr })
  })
  child.stdin?.end(input)
  return promise
}

/** The standard output of a call that must succeed, without warnings; the end of its last line left out. */
async function succeed(...given: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(...given)
  expect({ code, stderr }, given[0].join(' ')).toEqual({ code: 0, stderr: '' })
  return stdout.trimEnd()
}
const say = (...args: readonly string[]): Promise<string> => succeed(args)
const ask = async (...args: readonly string[]): Promise<unknown> => JSON.parse(await say(...args))
/** A call that must end with this code and say this. */
async function fail(code: number, text: string, ...given: Parameters<typeof run>): Promise<void> {
  const told = await run(...given)
  expect(told, given[0].join(' ')).toEqual({ code, stdout: '', stderr: expect.stringContaining(text) })
}

group.skipIf(bao === undefined)('OpenBao’s command line', { shuffle: false, timeout: 60_000 }, () => {
  test('is the program that STRONGROOM_TEST_BAO names', () => {
    expect(existsSync(bao ?? ''), `${bao} does not exist`).toBe(true)
  })

  test('shows the status, and logs in with a token that it keeps', async () => {
    const { version, ...status } = (await ask('status', '-format=json')) as Record<string, unknown>
    expect(status).toMatchObject({ initialized: true, sealed: false, ha_enabled: false, t: 1, n: 1 })
    expect(version).toMatch(/^\d+\.\d+\.\d+$/)
    expect(await say('status')).toMatch(/^Sealed +false$/m)
    await fail(2, '* permission denied', ['login', '-no-print', 'hvs.nonsense'])
    await fail(2, '* permission denied', ['secrets', 'list'])
    expect(await say('login', node.server.rootToken)).toContain('Success! You are now authenticated.')
    expect(readFileSync(join(home, '.vault-token'), 'utf8')).toBe(node.server.rootToken)
    expect(await ask('token', 'lookup', '-format=json')).toMatchObject({
      data: { policies: ['root'], type: 'service' },
    })
  })

  test('writes, shows, lists and deletes policies', async () => {
    const name = fresh('p')
    const rules = 'path "transit/keys/*" {\n  capabilities = ["read"]\n}\n'
    const file = join(home, `${name}.hcl`)
    writeFileSync(file, rules)
    expect(await say('policy', 'fmt', file)).toContain('Success! Formatted policy')
    expect(await say('policy', 'write', name, file)).toBe(`Success! Uploaded policy: ${name}`)
    expect(await say('policy', 'read', name)).toBe(`${readFileSync(file, 'utf8').trim()}`)
    expect((await say('policy', 'list')).split('\n')).toEqual(expect.arrayContaining(['default', name, 'root']))
    await fail(2, 'failed to parse policy', ['policy', 'write', name, '-'], {
      input: 'path "x" { capabilities = ["fly"] }',
    })
    expect(await say('policy', 'delete', name)).toBe(`Success! Deleted policy: ${name}`)
    await fail(2, `No policy named: ${name}`, ['policy', 'read', name])
  })

  test('enables, tunes, moves and disables engines', async () => {
    const [path, other] = [fresh('m'), fresh('m')]
    const enabled = await say(
      'secrets',
      'enable',
      `-path=${path}`,
      '-description=ours',
      '-max-lease-ttl=48h',
      'transit',
    )
    expect(enabled).toBe(`Success! Enabled the transit secrets engine at: ${path}/`)
    await fail(2, 'path is already in use', ['secrets', 'enable', `-path=${path}`, 'pki'])
    await fail(2, 'plugin not found in the catalog: kv', ['secrets', 'enable', 'kv'])
    await fail(2, 'plugin_version is not available', [
      'secrets',
      'enable',
      `-path=${other}`,
      '-plugin-version=v1',
      'pki',
    ])
    await say('secrets', 'tune', '-default-lease-ttl=1h', path)
    expect(await ask('secrets', 'list', '-format=json')).toMatchObject({
      [`${path}/`]: {
        type: 'transit',
        description: 'ours',
        config: { default_lease_ttl: 3600, max_lease_ttl: 172800 },
      },
    })
    expect(await say('secrets', 'list', '-detailed')).toMatch(
      new RegExp(`^${path}/ +transit +transit_.* 3600 +172800 `, 'm'),
    )
    expect(await say('secrets', 'move', path, other)).toContain(
      `Success! Finished moving secrets engine ${path}/ to ${other}/`,
    )
    expect(await say('secrets', 'disable', other)).toContain('Success! Disabled the secrets engine')
    expect(await ask('secrets', 'list', '-format=json')).not.toHaveProperty(`${other}/`)
  })

  test('makes keys, and encrypts and decrypts with them', async () => {
    const [path, name] = [fresh('m'), fresh('k')]
    await say('secrets', 'enable', `-path=${path}`, 'transit')
    await fail(2, `No value found at ${path}/keys`, ['list', `${path}/keys`])
    expect(await ask('write', '-f', '-format=json', `${path}/keys/${name}`)).toMatchObject({
      data: { name, latest_version: 1 },
    })
    expect(await say('list', `${path}/keys`)).toBe(`Keys\n----\n${name}`)
    expect(await ask('list', '-format=json', `${path}/keys`)).toEqual([name])
    expect(await say('read', '-field=type', `${path}/keys/${name}`)).toBe('aes256-gcm96')
    const ciphertext = (await say('write', '-field=ciphertext', `${path}/encrypt/${name}`, `plaintext=${hello}`)).trim()
    expect(ciphertext).toMatch(/^vault:v1:/)
    expect(await say('write', '-field=plaintext', `${path}/decrypt/${name}`, `ciphertext=${ciphertext}`)).toBe(
      `${hello}`,
    )
    await fail(2, 'Code: 400', ['write', `${path}/decrypt/${name}`, 'ciphertext=vault:v1:AAAA'])
    await fail(2, 'deletion is not allowed', ['delete', `${path}/keys/${name}`])
    await fail(2, `No value found at ${path}/keys/none`, ['read', `${path}/keys/none`])
    expect(await say('path-help', `${path}/keys/${name}`)).toContain('## PARAMETERS')
  })

  test('issues certificates, whose leases it looks up and revokes', async () => {
    const path = fresh('m')
    await say('secrets', 'enable', `-path=${path}`, '-max-lease-ttl=87600h', 'pki')
    await say('write', `${path}/config/urls`, `issuing_certificates=${node.server.url}/v1/${path}/ca`)
    await say('write', `${path}/root/generate/internal`, 'common_name=root.example', 'ttl=87600h', 'key_type=ec')
    const role = [
      'allowed_domains=example.com',
      'allow_subdomains=true',
      'generate_lease=true',
      'max_ttl=24h',
      'key_type=ec',
    ]
    await say('write', `${path}/roles/web`, ...role)
    await fail(2, 'common name', ['write', `${path}/issue/web`, 'common_name=a.example.org'])
    const issued = await ask('write', '-format=json', `${path}/issue/web`, 'common_name=a.example.com', 'ttl=1h')
    const { lease_id: lease, data } = issued as {
      lease_id: string
      data: { certificate: string; serial_number: string }
    }
    expect(data.certificate).toMatch(/^-----BEGIN CERTIFICATE-----/)
    expect(await say('list', `${path}/certs`)).toContain(data.serial_number)
    expect(await ask('lease', 'lookup', '-format=json', lease)).toMatchObject({ data: { id: lease, renewable: false } })
    await fail(2, 'lease is not renewable', ['lease', 'renew', lease])
    expect(await say('lease', 'revoke', '-sync', lease)).toBe(`Success! Revoked lease: ${lease}`)
    await fail(2, 'invalid lease', ['lease', 'lookup', lease])
    const revoked = await ask('read', '-format=json', `${path}/cert/${data.serial_number}`)
    expect(revoked).toMatchObject({ data: { revocation_time: expect.any(Number) } })
    expect((revoked as { data: { revocation_time: number } }).data.revocation_time).toBeGreaterThan(0)
    expect(await say('lease', 'revoke', '-prefix', '-sync', `${path}/`)).toContain(
      'Success! Revoked any leases with prefix',
    )
  })

  test('makes tokens that may do what their policy says until they are revoked', async () => {
    const name = fresh('p')
    const input = `path "transit/keys/${name}" { capabilities = ["create", "update", "read"] }`
    await succeed(['policy', 'write', name, '-'], { input })
    const made = await ask('token', 'create', `-policy=${name}`, '-ttl=1h', '-display-name=ci', '-format=json')
    const { client_token: token, accessor } = (made as { auth: { client_token: string; accessor: string } }).auth
    expect(await say('token', 'capabilities', token, `transit/keys/${name}`)).toBe('create, read, update')
    expect(await say('token', 'capabilities', token, 'sys/mounts')).toBe('deny')
    expect(await succeed(['token', 'capabilities', `transit/keys/${name}`], { token })).toBe('create, read, update')
    await succeed(['write', '-f', `transit/keys/${name}`], { token })
    await fail(2, '* permission denied', ['secrets', 'disable', 'transit'], { token })
    expect(await succeed(['token', 'renew', '-increment=30m'], { token })).toMatch(/^token_duration +30m$/m)
    expect(await say('token', 'lookup', '-accessor', accessor)).toMatch(/^display_name +token-ci$/m)
    await fail(2, 'tokens of type "batch"', ['token', 'create', '-type=batch', `-policy=${name}`])
    expect(await succeed(['token', 'revoke', '-self'], { token })).toBe('Success! Revoked token (if it existed)')
    await fail(2, '* permission denied', ['token', 'lookup'], { token })
    await fail(2, 'invalid accessor', ['token', 'lookup', '-accessor', accessor])
  })

  test('generates a root token where the recovery secret was made', async () => {
    const generate = (...args: readonly string[]) => ask('operator', 'generate-root', '-format=json', ...args)
    expect(await generate('-status')).toMatchObject({ started: false, required: 1, otp_length: 36 })
    await fail(2, 'generate-root is off', ['operator', 'generate-root', '-init'])
    expect(await say('operator', 'generate-root', '-generate-otp')).toMatch(/^[0-9A-Za-z]{36}$/)
    const { SOFTHSM2_CONF = '' } = process.env
    const made = await strongroom(['recovery-secret', '--config', node.server.configFile], { SOFTHSM2_CONF })
    const [, secret = ''] = /^recovery_secret: (\S+)/.exec(made.stdout) ?? []
    const { nonce, otp } = (await generate('-init')) as { nonce: string; otp: string }
    expect(await generate('-status')).toMatchObject({ started: true, nonce })
    await delay(1000) // the node takes a few tries in a second
    const done = await generate(`-nonce=${nonce}`, secret)
    expect(done).toMatchObject({ complete: true, progress: 1 })
    const encoded = (done as { encoded_token: string }).encoded_token
    const token = await say('operator', 'generate-root', `-decode=${encoded}`, `-otp=${otp}`)
    expect(await succeed(['token', 'lookup', '-field=policies'], { token })).toBe('[root]')
    expect(await say('operator', 'generate-root', '-cancel')).toContain('Success! Root token generation canceled')
  })

  test('is told what this server does not have', async () => {
    await fail(2, 'Tokens are the one way to sign in', ['auth', 'enable', 'userpass'])
    await fail(2, 'response wrapping is not available', ['token', 'create', '-wrap-ttl=60s'])
    await fail(2, 'unsupported path', ['operator', 'step-down'])
    await fail(2, 'No value found at sys/policies/acl', ['read', '-namespace=team', 'sys/policies/acl'])
  })
})
