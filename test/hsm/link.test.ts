import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Module } from '../../src/hsm/module.ts'
import { TokenMissing } from '../../src/hsm/session/link.ts'
import { onSoftHsm } from '../support/token.ts'
import { group } from './support/fault.ts'
import { openFaulty, theShim } from './support/faulty.ts'
import { newDirectory, openHsm, theToken } from './support/open.ts'

const user = () => ({
  busy: false,
  ended: 0,
  invalidated() {
    this.ended++
  },
})

test('one file is one module, whatever it is called, initialised with its first user and finalised with its last', async () => {
  const { library, libraryParameters } = await theToken()
  const other = join(newDirectory(), 'other.so')
  symlinkSync(library, other)
  const [a, b] = [user(), user()]
  const module = Module.acquire(library, libraryParameters, a)
  expect(Module.acquire(other, libraryParameters, b)).toBe(module)
  const { generation } = module
  module.release(a)
  expect(() => module.lib.C_GetInfo()).not.toThrow()
  module.release(b)
  expect(() => module.lib.C_OpenSession(Buffer.alloc(8), 6)).toThrow('CKR_')
  Module.acquire(library, libraryParameters, a)
  expect(module.generation).toBe(generation + 1)
  module.release(a)
})

test('a module is not renewed under the calls of another user, and tells the others when it is', async () => {
  const { library, libraryParameters } = await theToken()
  const [a, b] = [user(), user()]
  const module = Module.acquire(library, libraryParameters, a)
  Module.acquire(library, libraryParameters, b)
  b.busy = true
  expect(module.renew(a)).toBe(false)
  b.busy = false
  expect(module.renew(a)).toBe(true)
  expect([a.ended, b.ended]).toEqual([0, 1])
  module.release(a)
  module.release(b)
})

test('a module in use takes no other parameters', async () => {
  const { library, libraryParameters } = await theToken()
  const a = user()
  const module = Module.acquire(library, libraryParameters, a)
  expect(() => Module.acquire(library, 'others', user())).toThrow('other library parameters')
  module.release(a)
})

test('a token is found by label, serial or slot, and by all that are given together', async () => {
  const { label } = await theToken()
  await using open = await openHsm()
  const { serial, slot } = open.hsm.token
  const number = Number(slot.readBigUInt64LE())
  for (const token of [{ label, serial }, { slot: number }, { label, slot: number }]) {
    await using same = await openHsm({ token })
    expect(same.hsm.token.label).toBe(label)
  }
  for (const token of [{ label: 'other' }, { label, serial: 'x' }, { label, slot: number + 1 }]) {
    await expect(openHsm({ token })).rejects.toBeInstanceOf(TokenMissing)
  }
})

/** A process that has emptied the file of a token, as SoftHSM does at a login, and writes it again. */
const rewriting = `
const { copyFileSync, truncateSync } = require('node:fs')
const [file, kept] = process.argv.slice(1)
copyFileSync(file, kept)
truncateSync(file)
console.log('emptied')
setTimeout(() => copyFileSync(kept, file), 150)
`

test.runIf(onSoftHsm)('a token whose file another process rewrites at its login is there', async () => {
  const { directory, label } = await theToken()
  const [file = ''] = globSync(join(directory, '**/token.object'))
  const args = ['-e', rewriting, file, join(newDirectory(), 'kept')]
  const other = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(other, 'close')
  await once(other.stdout, 'data')
  await using open = await openHsm()
  expect(open.hsm.token.label).toBe(label)
  await ended
})

test('a failed start leaves the module as it was, and the next one succeeds', async () => {
  await expect(openHsm({ token: { label: 'nobody' } })).rejects.toThrow('"nobody"')
  await using open = await openHsm()
  expect(await open.hsm.random(4)).toHaveLength(4)
})

test('a token that answers slowly gets threads for everything; a fast one does not', async () => {
  const shim = await theShim()
  shim.set({ groups: group.cipher, delayMicroseconds: 500 })
  await using slow = await openHsm({ library: shim.library, executor: 'auto' })
  expect(slow.hsm.executor).toBe('threads')
  shim.clear()
  // The median of fifteen calls: a busy machine would have to be slow half of the time.
  await using fast = await openFaulty({ executor: 'auto', clock: { ...systemClock } })
  expect(fast.hsm.executor).toBe('inline')
})
