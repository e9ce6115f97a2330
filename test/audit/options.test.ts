import { describe, expect, test } from 'vitest'
import { type Device, devicePath, requireFreePath } from '../../src/audit/devices.ts'
import { checkDevice, isDeviceType, readOptions, unknownOptions } from '../../src/audit/options.ts'

const read = (type: string, options: Readonly<Record<string, string>>) => readOptions({ type, options })
const file = { file_path: '/d/f' }
const socket = { address: 'h:1' }

describe('the options of an audit device', () => {
  test('hide accessors and secrets and show lists whole unless they say otherwise', () => {
    const usual = { prefix: '', hmacAccessor: true, logRaw: false, elideListResponses: false }
    expect(read('file', file)).toEqual({ place: { kind: 'file', path: '/d/f', mode: 0o600 }, ...usual })
    const place = { kind: 'socket', socketType: 'tcp', address: 'h:1', host: 'h', port: 1, timeoutMilliseconds: 2000 }
    expect(read('socket', socket)).toEqual({ place, ...usual })
    const said = { hmac_accessor: 'false', log_raw: 'true', elide_list_responses: 'true', prefix: 'p ' }
    expect(read('file', { ...file, ...said })).toMatchObject({
      ...{ prefix: 'p ', hmacAccessor: false, logRaw: true, elideListResponses: true },
    })
  })

  test('that a type has are not told to be unknown, and those of the other type are', () => {
    const common = ['format', 'prefix', 'hmac_accessor', 'log_raw', 'elide_list_responses']
    const own = { file: ['file_path', 'path', 'mode'], socket: ['address', 'socket_type', 'write_timeout'] }
    const given = Object.fromEntries([...common, ...own.file, ...own.socket, '', 'filter'].map((name) => [name, 'x']))
    expect(unknownOptions('file', given)).toEqual([...own.socket, '', 'filter'])
    expect(unknownOptions('socket', given)).toEqual([...own.file, '', 'filter'])
    expect(['file', 'socket', 'syslog', 'constructor', ''].filter(isDeviceType)).toEqual(['file', 'socket'])
  })

  test.each([
    ['a mode', 'file', { mode: '0666' }, { mode: '0766' }, 'option mode must be octal'],
    ['a mode of rights alone', 'file', { mode: '6' }, { mode: '00600' }, 'option mode must be octal'],
    ['a prefix', 'file', { prefix: 'p'.repeat(100) }, { prefix: 'p'.repeat(101) }, 'option prefix may have 100'],
    ['a flag', 'file', { log_raw: 'T' }, { log_raw: 'yes' }, 'option log_raw must be true or false'],
    ['a format', 'file', { format: 'json' }, { format: 'jsonx' }, 'option format must be json'],
    ['the shortest timeout', 'socket', { write_timeout: '1ms' }, { write_timeout: '0ms' }, 'at least 1ms'],
    ['the longest timeout', 'socket', { write_timeout: '60s' }, { write_timeout: '60001ms' }, 'at most 60s'],
    ['the lowest port', 'socket', { address: 'h:1' }, { address: 'h:0' }, 'option address must be host:port'],
    ['the highest port', 'socket', { address: '[::1]:65535' }, { address: '[::1]:65536' }, 'must be host:port'],
    ['a host', 'socket', { address: `${'h'.repeat(253)}:1` }, { address: `${'h'.repeat(254)}:1` }, 'must be host:port'],
  ])('take %s up to its bound, and nothing beyond it', (_what, type, fits, beyond, text) => {
    const least = type === 'file' ? file : socket
    expect(() => read(type, { ...least, ...fits })).not.toThrow()
    expect(() => read(type, { ...least, ...beyond })).toThrow(text)
  })

  test('take the path of a unix socket up to the bytes that the system has for it', () => {
    const at = (address: string) => () => read('socket', { socket_type: 'unix', address })
    const longest = `/${'é'.repeat(53)}`
    expect(at(longest)().place).toMatchObject({ address: longest, host: '', port: 0 })
    for (const address of [`${longest}x`, 'd/s', '/d\0s']) expect(at(address)).toThrow('must be the absolute path')
    expect(at('')).toThrow('address is required')
  })

  test('name a file by an absolute path, or standard output', () => {
    expect(read('file', { path: '/d/./e/../f' }).place).toMatchObject({ path: '/d/f' })
    expect(read('file', { file_path: 'STDOUT' }).place).toEqual({ kind: 'stdout' })
    for (const path of ['f', '/d/', '/d\0f']) {
      expect(() => read('file', { file_path: path })).toThrow('option file_path must be the absolute path of a file')
    }
    expect(() => read('file', {})).toThrow('file_path is required')
  })
})

describe('a new audit device', () => {
  const device = { type: 'file', description: '', options: file }
  /** The characters that `options` take without the text of the one that fills them up. */
  const frame = JSON.stringify({ ...file, filter: '' }).length
  const filled = (length: number) => ({ ...device, options: { ...file, filter: 'x'.repeat(length - frame) } })

  test.each([
    ['a description', { ...device, description: 'x'.repeat(16_000) }, { ...device, description: 'x'.repeat(16_001) }],
    ['options', filled(64_000), filled(64_001)],
    [
      'a prefix',
      { ...device, options: { ...file, prefix: 'p'.repeat(32) } },
      { ...device, options: { ...file, prefix: 'p'.repeat(33) } },
    ],
    ['a prefix without a bracket', { ...device, options: { ...file, prefix: '@cee: ' } }, withPrefix('<34>')],
    ['a file in the directory', device, { ...device, options: { file_path: '/dd/f' } }],
    [
      'a socket without a prefix',
      { ...device, type: 'socket', options: { ...socket, prefix: '' } },
      { ...device, type: 'socket', options: { ...socket, prefix: 'p' } },
    ],
  ])('may have %s, and nothing beyond it', (_what, fits, beyond) => {
    expect(() => checkDevice(fits, '/d')).not.toThrow()
    expect(() => checkDevice(beyond, '/d')).toThrow(expect.objectContaining({ status: 400 }))
  })

  test('may lie anywhere if its directory is the root', () => {
    expect(() => checkDevice({ ...device, options: { file_path: '/x/y' } }, '/')).not.toThrow()
  })

  function withPrefix(prefix: string) {
    return { ...device, options: { ...file, prefix } }
  }
})

describe('the path of an audit device', () => {
  test('has parts of letters, digits and some marks, and 200 characters at most', () => {
    for (const name of ['a', '_a/b.c@d~e-f', '1/2', 'p'.repeat(200)]) expect(devicePath(name)).toBe(`${name}/`)
    expect(devicePath('a/')).toBe('a/')
    for (const name of ['', '/', '/a', 'a//b', 'a//', '.a', 'a/-b', 'a b', 'é', 'p'.repeat(201)]) {
      expect(() => devicePath(name), name).toThrow('the parts of a device path begin with')
    }
  })

  test('is free if no device stands there, above or below it, and there are fewer than 99', () => {
    const devices = (count: number) => Array.from({ length: count }, (_, n) => ({ path: `d${n}/x/` })) as Device[]
    for (const path of ['d1/x/', 'd1/', 'd1/x/y/']) {
      expect(() => requireFreePath(devices(3), path)).toThrow('path already in use: d1/x/')
    }
    for (const path of ['d1/y/', 'd1/xy/', 'd3/x/']) expect(() => requireFreePath(devices(3), path)).not.toThrow()
    expect(() => requireFreePath(devices(98), 'new/')).not.toThrow()
    expect(() => requireFreePath(devices(99), 'new/')).toThrow('there may be at most 99 audit devices')
  })
})
