import { expect, test } from 'vitest'
import { Secrets } from '../../src/config/secrets.ts'
import { parseConfig } from '../../src/config.ts'
import { tryPin } from '../../src/supervisor/pin.ts'

function trial(label: string, library = 'any.so') {
  const text = `
database: { url: 'mysql://u@h/s' }
pkcs11: { library: ${library}, token: { label: '${label}' }, pin: { prompt: true } }`
  return tryPin({
    config: parseConfig(text, {}).config,
    secrets: new Secrets({ pin: '1234' }),
    force: false,
    script: new URL('fixtures/trial.ts', import.meta.url),
    deadlineMilliseconds: 1000,
  })
}

test('a PIN that the token takes lets workers start', async () => {
  await expect(trial('0')).resolves.toBeUndefined()
})

test.each([
  ['3', 'the token refused the PIN'],
  ['4', 'the token has locked its PIN or would at one more wrong one'],
  ['5', 'the token is not there'],
  ['1', 'the token cannot be used'],
  ['77', 'the token cannot be used'],
  ['hangs', 'the token did not answer in 1 s'],
])('a trial that ends with %s lets none start and says: %s', async (label, words) => {
  await expect(trial(label)).rejects.toThrow(words)
})
