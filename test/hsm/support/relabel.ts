import pkcs11 from 'pkcs11js'
import { ckrOf } from '../../../src/hsm/faults.ts'
import type { Handle } from '../../../src/hsm/handle.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'

/**
 * The return value by which the token refuses to change an object's label, which the server never does; undefined if it
 * is changed. Uses a session of its own in the logged-in process.
 */
export function relabel(library: string, hsm: Hsm, object: Handle): number | undefined {
  const module = new pkcs11.PKCS11()
  module.load(library)
  try {
    const isOurs = (slot: Buffer) => module.C_GetTokenInfo(slot).serialNumber.trim() === hsm.token.serial
    const slot = module.C_GetSlotList(true).find(isOurs)
    if (slot === undefined) throw new Error(`no token ${hsm.token.serial}`)
    const session = module.C_OpenSession(slot, pkcs11.CKF_SERIAL_SESSION | pkcs11.CKF_RW_SESSION)
    try {
      module.C_SetAttributeValue(session, object.value, [{ type: pkcs11.CKA_LABEL, value: 'mine' }])
      return undefined
    } catch (error) {
      return ckrOf(error)
    } finally {
      module.C_CloseSession(session)
    }
  } finally {
    module.close()
  }
}
