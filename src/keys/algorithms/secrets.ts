import { CKK, CKM } from '../../hsm/constants.ts'
import type { AeadSecret, HmacSecret } from './algorithm.ts'

const none = { encrypt: false, sign: false, derive: false }

export const aesGcm = (bits: 128 | 256): AeadSecret => {
  const secretBytes = bits / 8
  return {
    name: `aes${bits}-gcm96`,
    kind: 'aead',
    class: 'secret',
    aead: { secretBytes, host: `aes-${bits}-gcm`, failure: 'cipher: message authentication failed' },
    sizeBytes: secretBytes,
    keyType: CKK.AES,
    generation: CKM.AES_KEY_GEN,
    mechanism: CKM.AES_GCM,
    using: 'aes-gcm',
    wrapping: 'wrap-aes',
    abilities: { encrypt: true, sign: false, derive: true },
    usages: ['encrypt', 'decrypt'],
    hostable: true,
    exports: { 'encryption-key': 'raw' },
    fips: true,
    matches: ({ valueLength }) => valueLength === secretBytes,
  }
}

export const chacha20Poly1305: AeadSecret = {
  ...aesGcm(256),
  name: 'chacha20-poly1305',
  aead: {
    secretBytes: 32,
    host: 'chacha20-poly1305',
    failure: 'chacha20poly1305: message authentication failed',
  },
  keyType: CKK.GENERIC_SECRET,
  generation: CKM.GENERIC_SECRET_KEY_GEN,
  mechanism: CKM.CHACHA20_POLY1305,
  using: 'chacha20-poly1305',
  wrapping: 'wrap-generic',
  usages: [],
  fips: false,
}

export const hmac: HmacSecret = {
  name: 'hmac',
  kind: 'hmac',
  class: 'secret',
  mac: { minimumBytes: 16, maximumBytes: 512 },
  sizeBytes: 32,
  keyType: CKK.GENERIC_SECRET,
  generation: CKM.GENERIC_SECRET_KEY_GEN,
  mechanism: CKM.SHA256_HMAC,
  using: 'hmac-sha256',
  wrapping: 'wrap-generic',
  abilities: none,
  usages: ['sign'],
  hostable: false,
  exports: {},
  fips: true,
  matches: () => false,
}
