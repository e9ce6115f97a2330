import { loadLibrary } from '../../src/hsm/binding.ts'
import { CKF, CKU_USER } from '../../src/hsm/constants.ts'
import { findToken } from '../../src/hsm/slots.ts'
import type { TestToken } from './token.ts'

/** The token's owner gives it another PIN. */
export function changePin({ library, label }: TestToken, from: string, to: string): void {
  const lib = loadLibrary(library)
  lib.C_Initialize({ flags: CKF.OS_LOCKING_OK })
  const slot = findToken(lib, { label })?.slot
  if (slot === undefined) throw new Error('no token')
  const session = lib.C_OpenSession(slot, CKF.SERIAL_SESSION | CKF.RW_SESSION)
  lib.C_Login(session, CKU_USER, from)
  lib.C_SetPIN(session, from, to)
  lib.C_Finalize()
}
