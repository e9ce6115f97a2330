import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { databaseUrl } from '../../src/config/places.ts'
import { ConfigError } from '../../src/config/problems.ts'
import { Secrets } from '../../src/config/secrets.ts'
import { parseConfig } from '../../src/config.ts'

const smallest = `
database: { url: 'mysql://strongroom@localhost/strongroom' }
pkcs11:
  library: /usr/lib/softhsm/libsofthsm2.so
  token: { label: lab }
  pin: { file: /etc/strongroom/pin }
`

/** Every line that a configuration is refused with. */
function problems(text: string, environment: Record<string, string> = {}): readonly string[] {
  try {
    parseConfig(text, environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

describe('a configuration', () => {
  test('is filled with every default and frozen all the way down', () => {
    const { config, warnings } = parseConfig(smallest, {})
    expect(config).toMatchObject({
      listeners: [{ address: '127.0.0.1:8200', maxRequestBytes: 33554432 }],
      database: { poolSize: 8 },
      pkcs11: { executor: 'auto', threads: 4, callDeadlineSeconds: 10, environment: {} },
      strict: false,
      fips: false,
      workers: 'auto',
      clusterName: 'strongroom',
      site: 'default',
      cluster: {},
      limits: { drainSeconds: 30 },
    })
    expect(Object.isFrozen(config)).toBe(true)
    expect(Object.isFrozen(config.listeners[0])).toBe(true)
    expect(Object.isFrozen(config.pkcs11.token)).toBe(true)
    expect(warnings).toEqual([])
  })

  test('takes a short name of letters, digits, - and _ as the site', () => {
    for (const site of ['a', 'north-2', 'Nord_3', 'x'.repeat(32)])
      expect(parseConfig(`${smallest}\nsite: ${site}`, {}).config.site).toBe(site)
    for (const site of ["''", "'a b'", 'a/b', 'nörd', 'x'.repeat(33)])
      expect(problems(`${smallest}\nsite: ${site}`)).toEqual([
        `site: "${site.replaceAll("'", '')}" is not allowed; it is a name of 1 to 32 letters, digits, - or _`,
      ])
  })

  test('is the same as YAML and as JSON, and scalars are read as the schema asks', () => {
    const yaml = `${smallest}\nworkers: auto\nstrict: true\nlisteners: [{address: '[::1]:8200', tls: {certificate: c, key: k, minimumVersion: 1.3}}]`
    const json = JSON.stringify({
      database: { url: 'mysql://strongroom@localhost/strongroom' },
      pkcs11: {
        library: '/usr/lib/softhsm/libsofthsm2.so',
        token: { label: 'lab' },
        pin: { file: '/etc/strongroom/pin' },
      },
      workers: 'auto',
      strict: true,
      listeners: [{ address: '[::1]:8200', tls: { certificate: 'c', key: 'k', minimumVersion: '1.3' } }],
    })
    expect(parseConfig(yaml, {}).config).toEqual(parseConfig(json, {}).config)
  })

  test('keeps the leading zeros of a serial number', () => {
    const text = smallest.replace('{ label: lab }', '{ serial: 0012345678901234 }')
    expect(parseConfig(text, {}).config.pkcs11.token).toEqual({ serial: '0012345678901234' })
  })

  test('keeps the database password out of itself', () => {
    const { config, urlPassword } = parseConfig(
      smallest.replace('strongroom@localhost', 'strongroom:s%40crt@localhost'),
      {},
    )
    expect(urlPassword).toBe('s@crt')
    expect(config.database.url).toBe('mysql://strongroom@localhost/strongroom')
  })

  test('takes several database nodes, whose password is one', () => {
    const nodes = 'mysql://s:x%2Cy@a/s,mysql://s:x%2Cy@b:3307/s'
    const { config, urlPassword } = parseConfig(smallest.replace('mysql://strongroom@localhost/strongroom', nodes), {})
    expect(config.database.url).toBe('mysql://s@a/s,mysql://s@b:3307/s')
    expect(urlPassword).toBe('x,y')
    expect(databaseUrl(config, new Secrets({ pin: '1', databasePassword: 'x,y' }))).toBe(nodes)
    const other = smallest.replace('mysql://strongroom@localhost/strongroom', 'mysql://s:x@a/s,mysql://s:y@b/s')
    expect(problems(other)).toEqual(['database.url: every node must have the same password'])
  })

  test('warns of a listener that others reach without TLS', () => {
    const { warnings } = parseConfig(`${smallest}\nlisteners: [{address: 0.0.0.0:80}, {address: 'unix:/run/s'}]`, {})
    expect(warnings).toEqual(['listeners.0: 0.0.0.0:80 is reachable from other machines without TLS'])
  })
})

describe('a refusal', () => {
  test('names every wrong field and its allowed values, all at once', () => {
    const text = `
listeners:
  - address: 8200
    tls: { certificate: c, minimumVersion: '1.1' }
  - maxRequestBytes: 5
database: { url: 'postgres://u:geheim@db/x', poolsize: 4 }
pkcs11:
  token: { label: a, serial: b }
  pin: { prompt: yes }
  executor: fast
strict: maybe
workers: 0
listen: x
`
    const lines = problems(text)
    expect(lines.toSorted()).toEqual(
      [
        'listen: unknown field; known here: listeners, database, pkcs11, pkcs11Libraries, strict, fips, workers, clusterName, site, cluster, stateDirectory, caches, coherence, limits, drain, log, audit',
        'listeners.0.address: "8200" is not allowed; it is host:port, [IPv6]:port or unix:/PATH',
        'listeners.0.tls.key: is missing; it is the path of the PEM file of the private key',
        'listeners.0.tls.minimumVersion: "1.1" is not allowed; it is one of 1.2, 1.3',
        'listeners.1.address: is missing; it is host:port, [IPv6]:port or unix:/PATH',
        'listeners.1.maxRequestBytes: 5 is not allowed; it is a whole number from 1024 to 1073741824',
        'database.url: the value (not shown) is not allowed; it is mysql://user@host:port/name, with ?socketPath=/PATH for a unix socket; several, separated by commas, are one cluster',
        'database.poolsize: unknown field; did you mean poolSize?',
        'pkcs11.library: is missing; it is the path of the PKCS#11 module, a shared library',
        'pkcs11.token: a section with label, serial is not allowed; it is exactly one of label, serial, slot',
        'pkcs11.pin.prompt: "yes" is not allowed; it is true',
        'pkcs11.executor: "fast" is not allowed; it is one of auto, inline, threads',
        'strict: "maybe" is not allowed; it is true or false',
        'workers: 0 is not allowed; it is a whole number from 1 to 256 or auto',
      ].toSorted(),
    )
    expect(lines.join()).not.toContain('geheim')
  })

  test('an audit device is not a setting: it is enabled by the API, and the configuration only sets how it writes', () => {
    expect(problems(`${smallest}\naudit: { file: /var/log/audit }`)).toEqual([
      'audit.file: unknown field; known here: durability, directory, headRetentionDays',
    ])
    expect(problems(`${smallest}\naudit: { durability: fsync }`)).toEqual([
      'audit.durability: "fsync" is not allowed; it is one of write, fdatasync',
    ])
  })

  test('tells a missing section from a wrong one', () => {
    expect(problems('')).toEqual([
      'database: is missing; it is a section with url, passwordFile, poolSize, tls',
      'pkcs11: is missing; it is a section with library, libraryParameters, environment, token, pin, executor, threads, callDeadlineSeconds, managedKeys',
    ])
    expect(problems('[1]')).toEqual(['the configuration must be a map of sections'])
    expect(problems('a: b: c')[0]).toMatch(/^the configuration is not YAML: /)
  })

  test('shows nothing of a YAML text that cannot be read', () => {
    expect(problems("database: { url: 'mysql://u:geheim@db/x'\n  bad").join()).not.toContain('geheim')
  })

  test('finds faults that involve several fields', () => {
    const text = `${smallest.replace('strongroom@localhost', 'strongroom:x@localhost').replace("strongroom' }", "strongroom', passwordFile: /p, tls: { key: k } }")}
listeners: [{address: 'h:70000'}, {address: 'h:1'}, {address: 'h:1'}]`
    expect(problems(text)).toEqual([
      'listeners.0.address: h:70000 is not allowed; a port is 0 to 65535',
      'listeners.2.address: h:1 occurs twice',
      'database.passwordFile: database.url already contains a password; give only one of the two',
      'database.tls: certificate and key must be given together',
    ])
  })

  test('is the only thing that any text can bring about', () => {
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (text, tree) => {
        expect(problems(text).length).toBeGreaterThan(0)
        expect(problems(JSON.stringify(tree)).length).toBeGreaterThan(0)
        problems(JSON.stringify({ ...tree, pkcs11: tree, database: tree, listeners: [tree] }))
      }),
    )
  })
})

describe('the environment', () => {
  test('overrides the file field by field', () => {
    const { config } = parseConfig(smallest, {
      STRONGROOM_DATABASE_POOL_SIZE: '3',
      STRONGROOM_PKCS11_CALL_DEADLINE_SECONDS: '7',
      STRONGROOM_STRICT: 'true',
      STRONGROOM_LISTENERS: '[{address: "a:1"}, {address: "b:2"}]',
      STRONGROOM_PKCS11_ENVIRONMENT: '{SOFTHSM2_CONF: /x}',
      STRONGROOM_LISTEN: 'c:3',
    })
    expect(config.database.poolSize).toBe(3)
    expect(config.pkcs11.callDeadlineSeconds).toBe(7)
    expect(config.strict).toBe(true)
    expect(config.pkcs11.environment).toEqual({ SOFTHSM2_CONF: '/x' })
    expect(config.listeners.map((one) => one.address)).toEqual(['c:3', 'b:2'])
  })

  test('is enough without a file', () => {
    const { config } = parseConfig('', {
      STRONGROOM_DATABASE_URL: 'mysql://root@localhost/s?socketPath=/run/m.sock',
      STRONGROOM_PKCS11_LIBRARY: '/l.so',
      STRONGROOM_PKCS11_TOKEN_LABEL: '007',
      STRONGROOM_PKCS11_PIN_ENVIRONMENT: 'STRONGROOM_PIN',
      STRONGROOM_PIN: '1234',
      STRONGROOM_LISTEN: '127.0.0.1:0',
    })
    expect(config.pkcs11.token).toEqual({ label: '007' })
    expect(config.database.url).toBe('mysql://root@localhost/s?socketPath=/run/m.sock')
  })

  test('is checked by the same rules, and an idle name is a warning', () => {
    expect(problems(smallest, { STRONGROOM_WORKERS: 'many', STRONGROOM_LISTENERS: '[' })).toEqual([
      'listeners: "[" is not allowed; it is a list of 1 or more',
      'workers: "many" is not allowed; it is a whole number from 1 to 256 or auto',
    ])
    expect(parseConfig(smallest, { STRONGROOM_WORKRES: '2', STRONGROOM_DATA: '/d' }).warnings).toEqual([
      'environment: STRONGROOM_WORKRES is no known setting and is ignored',
    ])
  })
})
