import { readFileSync } from 'node:fs'
import pkcs11js from 'pkcs11js'
import { embeddedToken } from '../../embedded/token.ts'

/** Keys that are born in a token, wrapped there and destroyed: the least cost of storing a new key. */
export interface Objects {
  aes256(): void
  secret(): void
  p256(): void
  /** The calls of an import: RSA-4096 decryption, a key made from its value, wrapped. */
  imported(): void
}

/** SoftHSM 2.6.1's number of AES-KWP (RFC 5649). */
const CKM_AES_KEY_WRAP_PAD = 0x210a

/** @param directory a new one, for the token */
export function openObjects(directory: string): Objects {
  const { library, label, pinFile, environment } = embeddedToken(directory)
  Object.assign(process.env, environment)
  const lib = new pkcs11js.PKCS11()
  lib.load(library)
  lib.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK })
  const slot = lib.C_GetSlotList(true).find((one) => lib.C_GetTokenInfo(one).label.replace(/[\0 ]+$/, '') === label)
  if (slot === undefined) throw new Error(`there is no token ${label}`)
  const session = lib.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION)
  lib.C_Login(session, pkcs11js.CKU_USER, readFileSync(pinFile, 'utf8').trim())
  const flags = (...types: number[]) => types.map((type) => ({ type, value: true }))
  const length = (bytes: number) => ({ type: pkcs11js.CKA_VALUE_LEN, value: bytes })
  const generate = (mechanism: number, bytes: number, ...usages: number[]) =>
    lib.C_GenerateKey(session, { mechanism }, [length(bytes), ...flags(...usages)])
  const kek = generate(pkcs11js.CKM_AES_KEY_GEN, 32, pkcs11js.CKA_WRAP, pkcs11js.CKA_UNWRAP)
  const room = Buffer.alloc(4096)
  const stored = (key: Buffer): void => {
    lib.C_WrapKey(session, { mechanism: CKM_AES_KEY_WRAP_PAD }, kek, key, room)
    lib.C_DestroyObject(session, key)
  }
  const pair = (mechanism: number, open: pkcs11js.Template, usage: number) =>
    lib.C_GenerateKeyPair(session, { mechanism }, open, flags(usage, pkcs11js.CKA_EXTRACTABLE))
  const transport = pair(
    pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN,
    [
      { type: pkcs11js.CKA_MODULUS_BITS, value: 4096 },
      { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.from([1, 0, 1]) },
      ...flags(pkcs11js.CKA_ENCRYPT),
    ],
    pkcs11js.CKA_DECRYPT,
  )
  const raw = { mechanism: pkcs11js.CKM_RSA_X_509 }
  return {
    aes256: () => stored(generate(pkcs11js.CKM_AES_KEY_GEN, 32, pkcs11js.CKA_EXTRACTABLE, pkcs11js.CKA_ENCRYPT)),
    secret: () =>
      stored(generate(pkcs11js.CKM_GENERIC_SECRET_KEY_GEN, 64, pkcs11js.CKA_EXTRACTABLE, pkcs11js.CKA_SIGN)),
    p256() {
      const curve = [{ type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from('06082a8648ce3d030107', 'hex') }]
      const { publicKey, privateKey } = pair(pkcs11js.CKM_EC_KEY_PAIR_GEN, curve, pkcs11js.CKA_SIGN)
      lib.C_GetAttributeValue(session, publicKey, [{ type: pkcs11js.CKA_EC_POINT }])
      stored(privateKey)
      lib.C_DestroyObject(session, publicKey)
    },
    imported() {
      lib.C_DecryptInit(session, raw, transport.privateKey)
      lib.C_Decrypt(session, Buffer.alloc(512, 1), Buffer.allocUnsafe(512))
      const template = [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
        { type: pkcs11js.CKA_VALUE, value: Buffer.alloc(32, 1) },
        ...flags(pkcs11js.CKA_EXTRACTABLE, pkcs11js.CKA_ENCRYPT),
      ]
      stored(lib.C_CreateObject(session, template))
    },
  }
}
