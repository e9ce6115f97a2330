import { randomFillSync } from 'node:crypto'
import pkcs11js from 'pkcs11js'
import { type LeafPair, type LeafPairType, makeLeafPair } from './authority/leafpair.ts'
import { makePair, type PairType, type RawPair } from './pair.ts'

/** The operations as they are without a server: one C_…Init and one call each, on session objects of one session. */
export interface RawToken {
  /** AES-256-GCM under a random IV; iv ‖ ciphertext ‖ tag. */
  encrypt(plaintext: Buffer): Buffer
  decrypt(payload: Buffer): Buffer
  /** HMAC-SHA-256. */
  hmac(message: Buffer): Buffer
  verifyHmac(message: Buffer, mac: Buffer): boolean
  random(bytes: number): Buffer
  /** The token's pair of that type, made when it is first asked for. */
  pair(type: PairType): RawPair
  /** A new pair, which is destroyed in the token once it is read. */
  leafPair(type: LeafPairType): LeafPair
}

const ivBytes = 12
const tagBytes = 16
const hmacMechanism = { mechanism: pkcs11js.CKM_SHA256_HMAC }
const gcm = (iv: Buffer) => ({
  mechanism: pkcs11js.CKM_AES_GCM,
  parameter: { type: pkcs11js.CK_PARAMS_AES_GCM_v240, iv, ivBits: 8 * ivBytes, tagBits: 8 * tagBytes },
})

/** Logs in to the token and makes its secret keys. */
export function openToken({ library, label, pin }: { library: string; label: string; pin: string }): RawToken {
  const lib = new pkcs11js.PKCS11()
  lib.load(library)
  lib.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK })
  const slot = lib.C_GetSlotList(true).find((one) => lib.C_GetTokenInfo(one).label.replace(/[\0 ]+$/, '') === label)
  if (slot === undefined) throw new Error(`there is no token ${label}`)
  const session = lib.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION)
  lib.C_Login(session, pkcs11js.CKU_USER, pin)
  const secret = (mechanism: number, usages: readonly number[]): Buffer =>
    lib.C_GenerateKey(session, { mechanism }, [
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      ...usages.map((type) => ({ type, value: true })),
    ])
  const aes = secret(pkcs11js.CKM_AES_KEY_GEN, [pkcs11js.CKA_ENCRYPT, pkcs11js.CKA_DECRYPT])
  const hmacKey = secret(pkcs11js.CKM_GENERIC_SECRET_KEY_GEN, [pkcs11js.CKA_SIGN, pkcs11js.CKA_VERIFY])
  const pairs = new Map<PairType, RawPair>()
  return {
    encrypt(plaintext) {
      const payload = Buffer.allocUnsafe(ivBytes + plaintext.length + tagBytes)
      const iv = randomFillSync(payload.subarray(0, ivBytes))
      lib.C_EncryptInit(session, gcm(iv), aes)
      lib.C_Encrypt(session, plaintext, payload.subarray(ivBytes))
      return payload
    },
    decrypt(payload) {
      lib.C_DecryptInit(session, gcm(payload.subarray(0, ivBytes)), aes)
      return lib.C_Decrypt(session, payload.subarray(ivBytes), Buffer.allocUnsafe(payload.length - ivBytes))
    },
    hmac(message) {
      lib.C_SignInit(session, hmacMechanism, hmacKey)
      return lib.C_Sign(session, message, Buffer.allocUnsafe(32))
    },
    verifyHmac(message, mac) {
      lib.C_VerifyInit(session, hmacMechanism, hmacKey)
      return lib.C_Verify(session, message, mac)
    },
    random: (bytes) => lib.C_GenerateRandom(session, Buffer.allocUnsafe(bytes)),
    pair(type) {
      const pair = pairs.get(type) ?? makePair({ lib, session }, type)
      pairs.set(type, pair)
      return pair
    },
    leafPair: (type) => makeLeafPair({ lib, session }, type),
  }
}
