import {
  constants,
  createHash,
  createHmac,
  generateKeyPairSync,
  sign as nodeSign,
  verify as nodeVerify,
  privateEncrypt,
} from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifyDigest } from '../../src/crypto/ecdsa.ts'
import { digest, hashes } from '../../src/crypto/hashes.ts'
import { encodePss, saltBytes, verifyPss } from '../../src/crypto/pss.ts'
import { fromDer, toDer } from '../../src/crypto/signature.ts'
import { withoutStackTraces } from '../../src/crypto/stacktraces.ts'
import { algorithms, pairAlgorithm } from '../../src/keys/algorithms.ts'
import { choose, combine, parseComponent } from '../../src/keys/kek/components.ts'
import { clusterOf, objectId, reserved } from '../../src/keys/kek/identity.ts'
import { pad } from '../../src/keys/making/padding.ts'
import { chooseResidence } from '../../src/keys/making/residence.ts'
import { component } from './custodians.ts'

const hashList = [...hashes.values()]

describe('hashes', () => {
  it('every row agrees with node:crypto on length, and its DigestInfo is what PKCS#1 v1.5 signs', () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    for (const hash of hashList) {
      const input = Buffer.from('input')
      expect(digest(hash, input)).toHaveLength(hash.bytes)
      const block = Buffer.concat([hash.digestInfo, digest(hash, input)])
      const signature = privateEncrypt({ key: privateKey, padding: constants.RSA_PKCS1_PADDING }, block)
      expect(nodeVerify(hash.node, input, publicKey, signature)).toBe(true)
    }
  })
})

describe('ECDSA', () => {
  // P-224 is for certificates only.
  const curves = [...algorithms.values(), pairAlgorithm('ecdsa-p224')].filter((row) => row?.kind === 'ec')

  it('a digest verifies exactly when node:crypto verifies the input', () => {
    for (const { curve } of curves) {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve.openssl })
      const other = generateKeyPairSync('ec', { namedCurve: curve.openssl }).publicKey
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 100 }), fc.constantFrom(...hashList), (input, hash) => {
          const signature = nodeSign(hash.node, input, { key: privateKey, dsaEncoding: 'ieee-p1363' })
          const hashed = digest(hash, input)
          expect(verifyDigest(curve, publicKey, hashed, signature)).toBe(true)
          expect(verifyDigest(curve, other, hashed, signature)).toBe(false)
          signature[3] = (signature[3] ?? 0) ^ 1
          expect(verifyDigest(curve, publicKey, hashed, signature)).toBe(false)
        }),
        { numRuns: 12 },
      )
    }
  })

  it('zero, the order, and wrong lengths are never a signature', () => {
    for (const { curve } of curves) {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve: curve.openssl })
      const size = curve.coordinateBytes
      const order = Buffer.from(curve.order.toString(16).padStart(2 * size, '0'), 'hex')
      const one = Buffer.alloc(size, 0)
      one[size - 1] = 1
      const hashed = createHash('sha256').update('x').digest()
      for (const parts of [[Buffer.alloc(size), one], [one, Buffer.alloc(size)], [order, one], [one, order], [one]]) {
        expect(verifyDigest(curve, publicKey, hashed, Buffer.concat(parts))).toBe(false)
      }
    }
  })

  it('DER and r‖s are two forms of one signature', () => {
    fc.assert(
      fc.property(
        fc
          .constantFrom(...curves)
          .chain(({ curve }) =>
            fc.uint8Array({ minLength: 2 * curve.coordinateBytes, maxLength: 2 * curve.coordinateBytes }),
          ),
        (bare) => {
          expect(fromDer(toDer(bare), bare.length / 2)).toEqual(Buffer.from(bare))
        },
      ),
    )
  })

  it('only the one DER form is taken, and nothing crashes on bytes that are none', () => {
    const der = toDer(Buffer.alloc(64, 0x81))
    expect(() => fromDer(Buffer.concat([der, Buffer.alloc(1)]), 32)).toThrow('extra data')
    const long = Buffer.concat([Buffer.from([0x30, 0x81, der[1] ?? 0]), der.subarray(2)])
    expect(() => fromDer(long, 32)).toThrow('supplied signature is invalid')
    expect(() => fromDer(Buffer.from('3006020200010201ff', 'hex'), 32)).toThrow()
    expect(fromDer(Buffer.from('30060201ff020101', 'hex'), 32)).toBeUndefined()
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        try {
          fromDer(bytes, 32)
        } catch (error) {
          expect(String(error)).toContain('supplied signature')
        }
      }),
    )
  })
})

describe('EMSA-PSS', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

  it('what is encoded here node:crypto verifies, and the other way round, for every hash and salt', () => {
    fc.assert(
      fc.property(fc.constantFrom(...hashList), fc.nat({ max: 190 }), fc.uint8Array(), (hash, salt, input) => {
        const hashed = digest(hash, input)
        const block = encodePss(hashed, hash, 256, salt)
        const signature = privateEncrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, block)
        const pss = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: salt }
        expect(nodeVerify(hash.node, input, pss, signature)).toBe(true)
        expect(verifyPss(block, hashed, hash, salt)).toBe(true)
        expect(verifyPss(block, hashed, hash, 'auto')).toBe(true)
        expect(verifyPss(block, hashed, hash, salt + 1)).toBe(false)
        expect(verifyPss(block, digest(hash, Buffer.from('another')), hash, 'auto')).toBe(false)
        block[200] = (block[200] ?? 0) ^ 0x40
        expect(verifyPss(block, hashed, hash, 'auto')).toBe(false)
      }),
      { numRuns: 60 },
    )
  })

  it('auto is the most that fits, hash the hash, and what does not fit is no length', () => {
    const hash = hashes.get('sha2-256')
    if (hash === undefined) throw new Error('no sha2-256')
    expect(saltBytes('auto', hash, 256)).toBe(222)
    expect(saltBytes('hash', hash, 256)).toBe(32)
    expect(saltBytes(223, hash, 256)).toBeUndefined()
    expect(saltBytes(-1, hash, 256)).toBeUndefined()
  })
})

describe('padded HMAC secrets', () => {
  it('a secret filled to 64 bytes is the same key for every hash and every length from 16 to 512', () => {
    for (const hash of hashList) {
      for (let length = 16; length <= 512; length += 1) {
        const secret = Buffer.alloc(length, length % 251)
        const mac = createHmac(hash.node, secret).update('input').digest()
        expect(createHmac(hash.node, pad(secret)).update('input').digest().equals(mac)).toBe(true)
      }
    }
  })
})

describe('components', () => {
  const [one, two, three, four] = [component(1), component(2), component(4), component(8)]
  const many = (count: number) => Array.from({ length: count }, (_, index) => component(index))

  it('the KEK is the XOR of all components', () => {
    expect(combine([component(1), component(2), component(4)])).toEqual(Buffer.alloc(32, 7))
  })

  it('a component that was mistyped, given twice, or alone is refused', () => {
    const wrong = { ...component(1), bytes: Buffer.alloc(32, 9) }
    expect(() => combine([component(2), wrong])).toThrow('component 2 does not match its check value')
    expect(() => combine([component(2), component(2)])).toThrow('equal components')
    expect(() => combine([component(2)])).toThrow('two custodians')
  })

  it('are twenty at most', async () => {
    expect(combine(many(20))).toHaveLength(32)
    expect(() => combine(many(21))).toThrow('more than 20 components')
    await expect(choose(many(21), one.checkValue)).rejects.toThrow('more than 20 components')
  })

  it('are chosen by the check value among those of several ceremonies', async () => {
    const { checkValue } = component(2 ^ 8)
    expect(await choose([one, two, three, four], checkValue)).toEqual([two, four])
    expect(await choose([one, two, three], checkValue)).toBeUndefined()
    expect(await choose([two, four], checkValue)).toEqual([two, four])
    expect(await choose([four, one, two], checkValue)).toEqual([four, two])
  })

  it('alone make nothing, the last one included, and neither does one that is there twice', async () => {
    await expect(choose([two], two.checkValue)).rejects.toThrow('two custodians')
    expect(await choose([one, two], one.checkValue)).toBeUndefined()
    expect(await choose([one, two], two.checkValue)).toBeUndefined()
    await expect(choose([one, one], one.checkValue)).rejects.toThrow('already given')
  })

  it('are searched while other work goes on, so that leases are renewed', async () => {
    let turns = 0
    const counting = setInterval(() => turns++, 1)
    expect(await choose(many(12), Buffer.alloc(8))).toBeUndefined()
    clearInterval(counting)
    expect(turns).toBeGreaterThan(8)
  })

  it('is read from hexadecimal text with blanks, and from nothing else', () => {
    const { bytes, checkValue } = component(0xab)
    expect(parseComponent(`${bytes.toString('hex')} ${checkValue.toString('hex')}\n`)).toEqual({ bytes, checkValue })
    expect(() => parseComponent('abcd')).toThrow('64 hexadecimal digits')
  })
})

describe('identity', () => {
  it('an id names its cluster, and only ours are reserved', () => {
    const [cluster, object] = ['0b3c9ff2-7a51-4f0e-8a52-0b8f5b0f8a11', '7dfc7d5b-5b0c-4d5e-9a0e-6a0b8f1f2c33']
    const id = objectId(cluster, object)
    expect(clusterOf(id)).toBe(cluster)
    expect(reserved(id)).toBe(true)
    expect(reserved(Buffer.from('strongroom'))).toBe(false)
    expect(clusterOf(Buffer.from('mine'))).toBeUndefined()
  })
})

describe('residence', () => {
  const token = (...proven: string[]) => ({
    supports: (ability: string) => proven.includes(ability),
    missing: (ability: string) => `CKM of ${ability}`,
  })
  const row = (name: string) => {
    const algorithm = algorithms.get(name)
    if (algorithm === undefined) throw new Error(name)
    return algorithm
  }
  const softhsm = token('aes-gcm', 'wrap-aes', 'ecdsa-p256', 'wrap-p256', 'eddsa', 'hmac-sha256', 'wrap-generic')

  it.each([
    ['aes256-gcm96', false, false, { residence: 'wrapped', kek: 'use' }],
    ['aes256-gcm96', true, false, { residence: 'wrapped', kek: 'export' }],
    ['ecdsa-p256', false, true, { residence: 'wrapped', kek: 'use' }],
    ['ed25519', false, false, { residence: 'enveloped', kek: 'open' }],
    ['ed25519', false, true, { residence: 'token', kek: undefined }],
    ['hmac', false, false, { residence: 'wrapped', kek: 'use' }],
    ['hmac', true, false, { residence: 'wrapped', kek: 'export' }],
    ['hmac', false, true, { residence: 'wrapped', kek: 'use' }],
    ['chacha20-poly1305', false, false, { residence: 'enveloped', kek: 'open' }],
  ])('%s, exportable %s, strict %s', (name, exportable, strict, placement) => {
    expect(chooseResidence(row(name), { exportable, strict, capabilities: softhsm })).toEqual(placement)
  })

  it('an HMAC secret that is opened to be loaded is enveloped, and refused where that is forbidden', () => {
    const place = (when: 'made' | 'loaded', more: { strict?: boolean; hmacInHsmOnly?: boolean } = {}) =>
      chooseResidence(row('hmac'), {
        ...{ exportable: false, strict: false, capabilities: softhsm, exposure: { when, why: 'the reason' } },
        ...more,
      })
    expect(place('loaded')).toEqual({ residence: 'enveloped', kek: 'open' })
    expect(place('made')).toEqual({ residence: 'wrapped', kek: 'use' })
    for (const when of ['made', 'loaded'] as const) {
      expect(() => place(when, { strict: true })).toThrow('strict mode: the reason')
      expect(() => place(when, { hmacInHsmOnly: true })).toThrow('hmac_in_hsm_only: the reason')
    }
  })

  it('strict mode names what the token lacks', () => {
    const refuse =
      (name: string, exportable = false) =>
      () =>
        chooseResidence(row(name), { exportable, strict: true, capabilities: softhsm })
    expect(refuse('chacha20-poly1305')).toThrow('strict mode: the HSM lacks CKM of chacha20-poly1305')
    expect(refuse('rsa-2048')).toThrow('CKM of rsa-pkcs1')
    expect(refuse('ed25519', true)).toThrow('cannot be exported')
  })
})

describe('calls without stack traces', () => {
  it('give what they give, and leave later errors their traces, also when they throw', () => {
    const { stackTraceLimit } = Error
    expect(withoutStackTraces(() => 'given')).toBe('given')
    expect(() =>
      withoutStackTraces(() => {
        throw new Error('refused')
      }),
    ).toThrow('refused')
    expect(Error.stackTraceLimit).toBe(stackTraceLimit)
    expect(new Error('later').stack).toContain('pure.test.ts')
  })
})
