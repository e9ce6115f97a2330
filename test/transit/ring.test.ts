import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Attributes, Ring, Version } from '../../src/engines/transit/ring/ring.ts'
import { configure, refuseSoftDeleted, rotated, rotationDue, trimmed } from '../../src/engines/transit/ring/rules.ts'
import {
  VersionAhead,
  versionOf,
  versionToMac,
  versionToMake,
  versionToUse,
} from '../../src/engines/transit/ring/versions.ts'
import { ApiError, badRequest } from '../../src/errors.ts'

const attributes = (changes: Partial<Attributes> = {}): Attributes => ({
  type: 'aes256-gcm96',
  exportable: false,
  allowPlaintextBackup: false,
  deletionAllowed: false,
  autoRotateSeconds: 0,
  latestVersion: 1,
  minDecryptionVersion: 1,
  minEncryptionVersion: 0,
  minAvailableVersion: 0,
  imported: false,
  allowRotation: false,
  softDeleted: false,
  hmacInHsmOnly: null,
  ...changes,
})

function ringOf(key: Attributes): Ring {
  const versions = new Map<number, Version>()
  for (let version = Math.max(1, key.minAvailableVersion); version <= key.latestVersion; version++) {
    versions.set(version, {
      version,
      material: `m${version}`,
      hmacMaterial: `h${version}`,
      prkMaterial: null,
      convergentVersion: 0,
      managedKey: null,
      certificateChain: null,
      createdAt: 0,
    })
  }
  return { key, versions }
}

const ring = (changes: Partial<Attributes> = {}) => ringOf(attributes(changes))

describe('the version a request gets', () => {
  test('0 makes with the latest', () => {
    expect(versionToMake(ring({ latestVersion: 3 }), 0, 'encryption').version).toBe(3)
  })

  test.each([
    [-1, 'requested version for encryption is negative'],
    [4, 'requested version for encryption is higher than the latest key version'],
    [1, 'requested version for encryption is less than the minimum encryption key version'],
  ])('version %i is refused to encrypt: %s', (version, text) => {
    expect(() => versionToMake(ring({ latestVersion: 3, minEncryptionVersion: 2 }), version, 'encryption')).toThrow(
      text,
    )
  })

  test('with no minimum set an older version still encrypts', () => {
    expect(versionToMake(ring({ latestVersion: 3 }), 1, 'encryption').version).toBe(1)
  })

  test('a version above the latest is too new, one below the minimum too old', () => {
    const old = ring({ latestVersion: 3, minDecryptionVersion: 2 })
    expect(() => versionToUse({ ...old, current: true }, 4, 'ciphertext')).toThrow(
      badRequest('invalid ciphertext: version is too new'),
    )
    expect(() => versionToUse(old, 1, 'signature')).toThrow('disallowed by policy (too old)')
    expect(() => versionToUse(old, 1, 'HMAC')).toThrow('cannot verify HMAC: version is too old (disallowed by policy)')
  })

  test('a version above the latest of a cached ring is not refused yet: another worker may have made it', () => {
    expect(() => versionToUse(ring(), 2, 'HMAC')).toThrow(VersionAhead)
  })

  test('the latest version makes an HMAC whatever the minimum is', () => {
    expect(versionToMac(ring({ latestVersion: 2, minEncryptionVersion: 2 }), 2).version).toBe(2)
    expect(() => versionToMac(ring({ latestVersion: 3, minEncryptionVersion: 3 }), 2)).toThrow('version is too old')
    expect(() => versionToMac(ring(), 7)).toThrow('key version does not exist; latest key version is 1')
    expect(() => versionToMac(ring(), -1)).toThrow('key version does not exist (cannot be negative)')
  })
})

describe('configuration', () => {
  test.each([
    [{ min_decryption_version: -1 }, 'min decryption version cannot be negative'],
    [{ min_encryption_version: -1 }, 'min encryption version cannot be negative'],
    [{ min_decryption_version: 9 }, 'cannot set min decryption version of 9, latest key version is 3'],
    [{ min_encryption_version: 9 }, 'cannot set min encryption version of 9, latest key version is 3'],
    [
      { min_decryption_version: 2, min_encryption_version: 1 },
      'cannot set min encryption/decryption values; min encryption version of 1 must be greater than or equal to min decryption version of 2',
    ],
    [{ auto_rotate_period: 3599 }, 'auto rotate period must be 0 to disable or at least an hour'],
  ])('%j is refused: %s', (wanted, text) => {
    expect(() => configure(attributes({ latestVersion: 3 }), wanted)).toThrow(text)
  })

  test('a minimum decryption version of 0 becomes 1, with a warning', () => {
    const { changes, warnings } = configure(attributes({ latestVersion: 2, minDecryptionVersion: 2 }), {
      min_decryption_version: 0,
    })
    expect(changes).toEqual({ minDecryptionVersion: 1 })
    expect(warnings).toHaveLength(1)
  })

  test('a key that could once be exported always can', () => {
    const key = attributes({ exportable: true, allowPlaintextBackup: true })
    expect(configure(key, { exportable: false, allow_plaintext_backup: false }).changes).toEqual({})
  })

  test('a trimmed key keeps its minimum versions at or above the trim', () => {
    const key = attributes({
      latestVersion: 4,
      minAvailableVersion: 3,
      minDecryptionVersion: 3,
      minEncryptionVersion: 3,
    })
    expect(() => configure(key, { min_encryption_version: 0 })).toThrow(
      'min encryption version should not be less than min available version',
    )
    expect(() => configure(key, { min_decryption_version: 2 })).toThrow(
      'min decryption version should not be less then min available version',
    )
  })

  test('a period is worth a warning for an imported key that may not rotate', () => {
    const warned = (key: Parameters<typeof attributes>[0], period: number) =>
      configure(attributes(key), { auto_rotate_period: period }).warnings.length > 0
    expect(warned({ imported: true, allowRotation: false }, 7200)).toBe(true)
    expect(warned({ imported: true, allowRotation: false }, 0)).toBe(false)
    expect(warned({ imported: true, allowRotation: true }, 7200)).toBe(false)
    expect(warned({}, 7200)).toBe(false)
  })

  test('an imported key rotates only when it was allowed to', () => {
    expect(() => rotated('k', attributes({ imported: true }))).toThrow('imported key k does not allow rotation')
    expect(rotated('k', attributes({ imported: true, allowRotation: true, latestVersion: 4 }))).toEqual({
      latestVersion: 5,
      imported: false,
    })
  })
})

describe('trimming', () => {
  const key = attributes({ latestVersion: 6, minAvailableVersion: 2, minDecryptionVersion: 3, minEncryptionVersion: 4 })

  test('raises the floor to the requested version', () => {
    expect(trimmed(key, 3)).toEqual({ minAvailableVersion: 3 })
    expect(trimmed(key, 2)).toEqual({ minAvailableVersion: 2 })
  })

  test.each([
    [{}, 1, 'minimum available version cannot be decremented'],
    [{}, -1, 'minimum available version cannot be decremented'],
    [
      { minEncryptionVersion: 0 },
      3,
      'minimum available version cannot be set when minimum encryption version is not set',
    ],
    [
      { minDecryptionVersion: 0 },
      3,
      'minimum available version cannot be set when minimum decryption version is not set',
    ],
    [{}, 5, 'minimum available version cannot be greater than minmum encryption version'],
    [{}, 4, 'minimum available version cannot be greater than minimum decryption version'],
    [{ minAvailableVersion: 0 }, 0, 'minimum available version should be positive'],
  ])('of %j to %i is refused: %s', (changes, version, text) => {
    expect(() => trimmed({ ...key, ...changes }, version)).toThrow(text)
  })
})

describe('automatic rotation', () => {
  test('is due one period after the latest version was made', () => {
    expect(rotationDue(attributes({ autoRotateSeconds: 3600 }), 5000)).toBe(3_605_000)
  })

  test.each([
    { autoRotateSeconds: 0 },
    { autoRotateSeconds: 3600, imported: true },
    { autoRotateSeconds: 3600, softDeleted: true },
    { autoRotateSeconds: 3600, type: 'managed_key' },
  ])('is never due for %j', (changes) => {
    expect(rotationDue(attributes(changes), 5000)).toBeNull()
  })

  test('is due for an imported key that may rotate', () => {
    const key = attributes({ autoRotateSeconds: 3600, imported: true, allowRotation: true })
    expect(rotationDue(key, 0)).toBe(3_600_000)
  })
})

test('a soft-deleted key is neither used nor rotated', () => {
  const key = attributes({ softDeleted: true })
  expect(() => refuseSoftDeleted(key)).toThrow('refusing to use soft-deleted key')
  expect(() => rotated('k', key)).toThrow('refusing to use soft-deleted key')
})

const anyKey = fc
  .record({
    latest: fc.integer({ min: 1, max: 8 }),
    decryption: fc.nat(8),
    encryption: fc.nat(8),
    available: fc.nat(8),
  })
  .filter(({ latest, decryption, encryption, available }) => {
    const sound = decryption >= 1 && decryption <= latest && encryption <= latest && available <= decryption
    return sound && (encryption === 0 ? available === 0 : encryption >= decryption)
  })
  .map(({ latest, decryption, encryption, available }) =>
    attributes({
      latestVersion: latest,
      minDecryptionVersion: decryption,
      minEncryptionVersion: encryption,
      minAvailableVersion: available,
    }),
  )

describe('laws', () => {
  test('a ring never serves a version below a floor, nor one above its latest', () => {
    fc.assert(
      fc.property(anyKey, fc.integer({ min: -2, max: 10 }), (key, asked) => {
        const whole = ringOf(key)
        const served = [
          () => versionOf(whole, asked),
          () => versionToUse(whole, asked, 'ciphertext'),
          () => versionToUse(whole, asked, 'HMAC'),
          () => versionToMake(whole, asked, 'signing'),
          () => versionToMac(whole, asked),
        ].flatMap((ask) => {
          try {
            return [ask().version]
          } catch {
            return []
          }
        })
        for (const version of served) {
          expect(version).toBeGreaterThanOrEqual(Math.max(key.minDecryptionVersion, key.minAvailableVersion))
          expect(version).toBeLessThanOrEqual(key.latestVersion)
        }
      }),
    )
  })

  test('everything that configure accepts is a sound key again', () => {
    const wanted = fc.record(
      {
        min_decryption_version: fc.integer({ min: -1, max: 9 }),
        min_encryption_version: fc.integer({ min: -1, max: 9 }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(anyKey, wanted, (key, change) => {
        let after: Attributes
        try {
          after = { ...key, ...configure(key, change).changes }
        } catch {
          return
        }
        expect(after.minDecryptionVersion).toBeGreaterThanOrEqual(1)
        expect(after.minDecryptionVersion).toBeLessThanOrEqual(after.latestVersion)
        expect(after.minEncryptionVersion === 0 || after.minEncryptionVersion >= after.minDecryptionVersion).toBe(true)
      }),
    )
  })

  test('after any sequence of changes, no version below the floor is served', () => {
    const version = fc.integer({ min: -1, max: 12 })
    const step = fc.oneof(
      fc.constant(() => (key: Attributes) => rotated('k', key)),
      version.map((to) => () => (key: Attributes) => trimmed(key, to)),
      fc
        .record({ min_decryption_version: version, min_encryption_version: version }, { requiredKeys: [] })
        .map((wanted) => () => (key: Attributes) => configure(key, wanted).changes),
    )
    const apply = (key: Attributes, change: (key: Attributes) => Partial<Attributes>): Attributes => {
      try {
        return { ...key, ...change(key) }
      } catch (error) {
        if (error instanceof ApiError) return key
        throw error
      }
    }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let key = attributes()
        for (const one of steps) {
          const before = key
          key = apply(key, one())
          expect(key.minAvailableVersion).toBeGreaterThanOrEqual(before.minAvailableVersion)
          expect(key.latestVersion).toBeGreaterThanOrEqual(before.latestVersion)
          // No version that may still be used has been trimmed.
          expect(key.minAvailableVersion).toBeLessThanOrEqual(key.minDecryptionVersion)
          const ring = ringOf(key)
          expect(versionToMake(ring, 0, 'encryption').version).toBe(key.latestVersion)
          for (let version = 0; version < key.minDecryptionVersion; version++) {
            expect(() => versionToUse(ring, version, 'ciphertext')).toThrow(ApiError)
          }
        }
      }),
    )
  })
})
