import { describe, expect, test } from 'vitest'
import { defaultCrlSettings } from '../../../src/engines/pki/crl/settings.ts'
import {
  adviceOn,
  type CrlFields,
  changeCrlSettings,
  needsRebuild,
} from '../../../src/engines/pki/publication/settings.ts'

const change = (fields: CrlFields, before = defaultCrlSettings) => changeCrlSettings(before, fields, 0)

describe('the settings of lists', () => {
  test('keep what a change leaves out, and durations as they were given', () => {
    const once = change({ expiry: '90', ocspExpiry: '1d', autoRebuild: undefined })
    expect(once).toEqual({ ...defaultCrlSettings, expiry: '90', ocspExpiry: '1d' })
    expect(change({ autoRebuild: true, autoRebuildGracePeriod: '1m' }, once)).toEqual({
      ...defaultCrlSettings,
      ...{ expiry: '90', ocspExpiry: '1d', autoRebuild: true, autoRebuildGracePeriod: '1m' },
    })
  })

  test('say when the list of all sites ceased to stand for those of the sites, which are then made anew', () => {
    const standing = change({ unifiedCrl: true, unifiedCrlOnExistingPaths: true, autoRebuild: true })
    expect(standing.localSince).toBeUndefined()
    for (const fields of [
      { unifiedCrlOnExistingPaths: false },
      { unifiedCrl: false, unifiedCrlOnExistingPaths: false },
    ]) {
      const ceased = changeCrlSettings(standing, fields, 7)
      expect(ceased.localSince).toBe(7)
      expect(needsRebuild(standing, ceased)).toBe(true)
      expect(changeCrlSettings(ceased, { expiry: '90h' }, 8).localSince).toBe(7)
    }
  })

  test.each<[CrlFields, string]>([
    [{ expiry: 'junk' }, 'given expiry could not be decoded: time: invalid duration "junk"'],
    [{ expiry: '' }, 'given expiry could not be decoded: time: invalid duration ""'],
    [{ expiry: '0' }, 'expiry must be greater than 0'],
    [{ expiry: '2562048h' }, 'given expiry could not be decoded: a duration is at most 2562047h, some 292 years'],
    [{ ocspExpiry: 'x' }, 'given ocsp_expiry could not be decoded: time: invalid duration "x"'],
    [{ ocspExpiry: '-1h' }, 'ocsp_expiry must be greater than or equal to 0 got: -1h'],
    [
      { autoRebuildGracePeriod: '5 h' },
      'given auto_rebuild_grace_period could not be decoded: time: invalid duration "5 h"',
    ],
    [{ deltaRebuildInterval: 'x' }, 'given delta_rebuild_interval could not be decoded: time: invalid duration "x"'],
    [
      { autoRebuildGracePeriod: '72h' },
      'CRL auto-rebuilding grace period (72h) must be strictly shorter than CRL expiry (72h) value when auto-rebuilding of CRLs is enabled',
    ],
    [
      { expiry: '12h', autoRebuild: true },
      'CRL auto-rebuilding grace period (12h) must be strictly shorter than CRL expiry (12h) value when auto-rebuilding of CRLs is enabled',
    ],
    [
      { deltaRebuildInterval: '80h' },
      'CRL delta rebuild window (80h) must be strictly shorter than CRL expiry (72h) value when delta CRLs are enabled',
    ],
    [
      { autoRebuild: true, autoRebuildGracePeriod: '1m', enableDelta: true, expiry: '10m' },
      'CRL delta rebuild window (15m) must be strictly shorter than CRL expiry (10m) value when delta CRLs are enabled',
    ],
    [
      { enableDelta: true },
      'Delta CRLs cannot be enabled when auto rebuilding is disabled as the complete CRL is always regenerated!',
    ],
    [
      { crossClusterRevocation: true },
      'Global, cross-cluster revocation queue cannot be enabled when auto rebuilding is disabled as the local cluster may not have the certificate entry!',
    ],
    [
      { unifiedCrl: true },
      'unified_crl=true requires auto_rebuild=true, as unified CRLs cannot be rebuilt on every revocation.',
    ],
    [
      { autoRebuild: true, unifiedCrlOnExistingPaths: true },
      'unified_crl_on_existing_paths cannot be enabled if unified_crl is disabled',
    ],
  ])('refuse %j: %s', (fields, reason) => {
    expect(() => change(fields)).toThrow(expect.objectContaining({ status: 400, message: reason }))
  })

  test('refuse to end auto_rebuild while what needs it is on', () => {
    const before = change({ autoRebuild: true, enableDelta: true })
    expect(() => change({ autoRebuild: false }, before)).toThrow(/^Delta CRLs cannot be enabled/)
    expect(change({ autoRebuild: false, enableDelta: false }, before)).toMatchObject({ autoRebuild: false })
  })

  test('an expiry below windows that count for nothing is taken', () => {
    expect(change({ expiry: '10m' })).toMatchObject({ expiry: '10m', autoRebuildGracePeriod: '12h' })
  })

  test('take the longest expiry that there is', () => {
    expect(change({ expiry: '2562047h' })).toMatchObject({ expiry: '2562047h' })
  })

  test.each<[CrlFields, string[]]>([
    [{ autoRebuild: true, autoRebuildGracePeriod: '2m' }, []],
    [{ autoRebuildGracePeriod: '1s' }, []],
    [{ autoRebuild: true, autoRebuildGracePeriod: '1s', disable: true }, []],
    [
      { autoRebuild: true, autoRebuildGracePeriod: '119s' },
      [expect.stringMatching(/^auto_rebuild_grace_period \(119s\) is below 120s: /)],
    ],
  ])('changed by %j are taken with the advice %j', (fields, advice) => {
    expect(adviceOn(change(fields))).toEqual(advice)
  })

  test.each<[CrlFields, boolean]>([
    [{ disable: true }, true],
    [{ autoRebuild: true }, false],
    [{ expiry: '10h' }, false],
    [{ ocspDisable: true }, false],
    [{ autoRebuild: true, enableDelta: true }, true],
    [{ autoRebuild: true, unifiedCrl: true }, true],
  ])('a change by %j needs new lists: %j', (fields, needed) => {
    expect(needsRebuild(defaultCrlSettings, change(fields))).toBe(needed)
  })

  test('the end of auto_rebuild needs new lists', () => {
    expect(needsRebuild({ ...defaultCrlSettings, autoRebuild: true }, defaultCrlSettings)).toBe(true)
  })
})
