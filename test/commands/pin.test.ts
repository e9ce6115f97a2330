import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { onTerminal, strongroom } from './cli.ts'
import { createSite, type Site } from './site.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/**
 * Whether the token has met a wrong PIN: CKF_USER_PIN_COUNT_LOW, which SoftHSM sets at the first wrong one and clears
 * at the next right one. With a PIN it logs in first.
 */
function wasTried({ token }: Site, pin = ''): boolean {
  const code = `
    const { PKCS11 } = require('pkcs11js'); const lib = new PKCS11(); lib.load('${token.library}'); lib.C_Initialize()
    const slot = lib.C_GetSlotList(true).find((one) => lib.C_GetTokenInfo(one).label.trim() === '${token.label}')
    if ('${pin}') lib.C_Login(lib.C_OpenSession(slot, 4), 1, '${pin}')
    process.exit(lib.C_GetTokenInfo(slot).flags & 0x10000 ? 3 : 4)`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=commonjs', '-e', code], { encoding: 'utf8' })
  expect([3, 4], stderr).toContain(status)
  return status === 3
}

describe('a wrong PIN', () => {
  test('meets the token once, with eight workers and over restarts, until the PIN changes', async () => {
    await using site = await createSite({ workers: 8 })
    const serve = (...more: string[]) => strongroom(['server', '--config', site.file, ...more])
    writeFileSync(site.pinFile, 'wrong-7391', { mode: 0o600 })

    const first = await serve()
    expect(first).toMatchObject({ code: 1, stdout: '' })
    expect(first.stderr).toContain('the token refused the PIN')
    expect(first.stderr).not.toContain('process started')
    expect(wasTried(site)).toBe(true)

    expect(wasTried(site, site.token.pin)).toBe(false)
    for (const verb of ['server', 'init']) {
      const again = await strongroom([verb, '--config', site.file])
      expect(again).toMatchObject({ code: 1, stdout: '' })
      expect(again.stderr).toContain('nothing was tried')
    }
    expect(wasTried(site)).toBe(false)

    expect((await serve('--force')).code).toBe(1)
    expect(wasTried(site)).toBe(true)

    writeFileSync(site.pinFile, site.token.pin)
    expect((await serve()).stderr).toContain('process started')
    expect(wasTried(site)).toBe(false)
  })

  test('is kept nowhere, and stands in no log', async () => {
    await using site = await createSite()
    writeFileSync(site.pinFile, 'wrong-7391', { mode: 0o600 })
    const { stderr } = await strongroom(['server', '--config', site.file])
    const state = join(site.directory, 'state')
    const files = readdirSync(state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const kept = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    expect(kept.length).toBeGreaterThan(0)
    expect([stderr, ...kept].join()).not.toContain('7391')
  })
})

describe('a PIN that is asked for', () => {
  test('is read from the terminal without echo, with corrections, and reaches the token', async () => {
    await using site = await createSite()
    const { library, label, pin } = site.token
    const environment = { SOFTHSM2_CONF: process.env.SOFTHSM2_CONF }
    site.configure({ pkcs11: { library, token: { label }, environment, pin: { prompt: true } } })
    const { code, shown } = await onTerminal(['init', '--config', site.file], [['PIN of the token: ', `${pin}x\u007f`]])
    expect(code, shown).toBe(0)
    expect(shown).toContain('root_token:')
    expect(shown).not.toContain(pin)
  })

  test('is not waited for where there is no terminal', async () => {
    await using site = await createSite()
    const { library, label } = site.token
    site.configure({ pkcs11: { library, token: { label }, pin: { prompt: true } } })
    const child = spawn('setsid', ['-w', process.execPath, main, 'server', '--config', site.file])
    let stderr = ''
    child.stderr.on('data', (text) => {
      stderr += text
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect(code).toBe(1)
    expect(stderr).toContain('there is no terminal to ask on')
  })
})
