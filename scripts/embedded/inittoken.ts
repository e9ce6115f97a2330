/**
 * Run as a process of its own: initialises a free token of the module named by the argument, with label and PINs read
 * from standard input (softhsm2-util would want them on its command line, where every user of the machine sees them).
 * A process of its own, because a module reads its environment once and the parent never loads it.
 */
import { readFileSync } from 'node:fs'
import pkcs11js from 'pkcs11js'

const { label, pin, soPin }: { label: string; pin: string; soPin: string } = JSON.parse(readFileSync(0, 'utf8'))
const { CKF_RW_SESSION, CKF_SERIAL_SESSION, CKF_TOKEN_INITIALIZED, CKU_SO } = pkcs11js
const module = new pkcs11js.PKCS11()
module.load(process.argv[2] ?? '')
module.C_Initialize()
const slot = module.C_GetSlotList(true).find((id) => (module.C_GetTokenInfo(id).flags & CKF_TOKEN_INITIALIZED) === 0)
if (slot === undefined) throw new Error('the module has no free token')
module.C_InitToken(slot, soPin, label)
const session = module.C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION)
module.C_Login(session, CKU_SO, soPin)
module.C_InitPIN(session, pin)
module.C_Finalize()
