import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { databaseUrl } from '../../src/config/places.ts'
import { Secrets } from '../../src/config/secrets.ts'
import { loadConfig } from '../../src/config.ts'

const directory = mkdtempSync(join(tmpdir(), 'sr-secrets-'))
afterAll(() => rmSync(directory, { recursive: true }))

const pinFile = join(directory, 'pin')
const passwordFile = join(directory, 'password')
writeFileSync(pinFile, 'geheim-7391\n', { mode: 0o600 })
writeFileSync(passwordFile, 'p@ss wörd\r\n', { mode: 0o600 })

function load(pin: object, more: object = {}, environment: Record<string, string> = {}) {
  const file = join(directory, 'config.json')
  const config = {
    database: { url: 'mysql://u@localhost/s', passwordFile },
    pkcs11: { library: 'l', token: { slot: 0 }, pin },
    ...more,
  }
  writeFileSync(file, JSON.stringify(config))
  return loadConfig({ file, environment, prompt: async () => 'typed' })
}

describe('a secret', () => {
  test('comes from the source in the configuration', async () => {
    expect((await load({ file: pinFile })).secrets.reveal().pin).toBe('geheim-7391')
    expect((await load({ environment: 'HSM_PIN' }, {}, { HSM_PIN: '42' })).secrets.reveal().pin).toBe('42')
    expect((await load({ prompt: true })).secrets.reveal().pin).toBe('typed')
  })

  test('goes into the database URL only when the store asks', async () => {
    const { config, secrets } = await load({ file: pinFile })
    expect(config.database.url).toBe('mysql://u@localhost/s')
    const url = new URL(databaseUrl(config, secrets))
    expect(decodeURIComponent(url.password)).toBe('p@ss wörd')
  })

  test('is refused when it is empty or its source is missing, by the name of the field', async () => {
    await expect(load({ environment: 'HSM_PIN' })).rejects.toThrow(
      'pkcs11.pin.environment: the PIN is empty or not set',
    )
    await expect(load({ file: join(directory, 'none') })).rejects.toThrow('pkcs11.pin.file: ENOENT')
  })

  test('in a file that everybody can read is warned about, and refused in strict mode', async () => {
    const open = join(directory, 'open')
    writeFileSync(open, '1234')
    chmodSync(open, 0o644)
    const { warnings } = await load({ file: open })
    expect(warnings).toEqual([`pkcs11.pin.file: ${open} is open to everybody (mode 644)`])
    await expect(load({ file: open }, { strict: true })).rejects.toThrow('strict mode refuses that')
    chmodSync(open, 0o640)
    expect((await load({ file: open }, { strict: true })).warnings).toEqual([])
  })

  test('is shown by nothing that prints, logs or serialises', () => {
    const secrets = new Secrets({ pin: 'geheim-7391', databasePassword: 'geheim-db' })
    const shown = [
      JSON.stringify({ secrets }),
      inspect({ secrets }, { showHidden: true, depth: 9 }),
      `${secrets}`,
      Object.entries(secrets).flat().join(),
      JSON.stringify({ ...secrets }),
    ].join()
    expect(shown).not.toContain('geheim')
    const code = `
      import { createLog } from './src/log.ts'
      import { Secrets } from './src/config/secrets.ts'
      const secrets = new Secrets({ pin: 'geheim-7391', databasePassword: 'geheim-db' })
      createLog('info', { secrets }).info({ secrets, deep: { secrets }, err: new Error('x', { cause: secrets }) }, 'logged')`
    const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
    expect(status).toBe(0)
    expect(stderr).toContain('logged')
    expect(stderr).not.toContain('geheim')
  })
})
