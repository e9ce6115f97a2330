/*
 * A PKCS#11 module in front of another one that fails on command: for tests of what the server does when a token fails.
 *
 *   P11FAULT_MODULE  the real module
 *   P11FAULT_FILE    control words, mapped: struct control below, native byte order. All zero: nothing fails.
 *
 * A call whose group is in `groups` is counted; of those every `every`th is hit, `remaining` times (ALWAYS: without end).
 * A hit call waits `delay_us` and then returns `rv`; with rv 0 it goes through after the wait.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pkcs11.h"

#define ALWAYS 0xffffffffu

enum { INIT = 1, INFO = 2, SESSION = 4, LOGIN = 8, OBJECT = 16, CIPHER = 32, SIGN = 64, KEY = 128, DIGEST = 256, RANDOM = 512 };

struct control {
  _Atomic uint32_t groups, rv, delay_us, every, remaining;
  _Atomic uint32_t counted, hit; /* written here: calls in the groups, and those of them that were hit */
  /* Written here: logins tried; key pairs generated, sessions opened and closed with success. */
  _Atomic uint32_t logins, pairs, opened, closed;
  _Atomic uint32_t readable, extractable; /* a careless token: what C_UnwrapKey makes is so, whatever the template says */
};

static struct control *control;
static CK_FUNCTION_LIST *real, list;

static CK_RV fault(uint32_t group) {
  if (!(control->groups & group)) return CKR_OK;
  uint32_t every = control->every, rv = control->rv, count = ++control->counted, left = control->remaining;
  if (left == 0 || (every > 1 && count % every != 0)) return CKR_OK;
  while (left != ALWAYS && !atomic_compare_exchange_weak(&control->remaining, &left, left - 1))
    if (left == 0) return CKR_OK;
  control->hit++;
  if (control->delay_us) usleep(control->delay_us);
  return rv; /* as it was when the call came */
}

/*
 * Every PKCS#11 function takes at most eight integers or pointers. In the C calling conventions of x86-64 and arm64 a
 * callee ignores arguments beyond its own, so that one shape of wrapper serves all.
 */
static void note(void *function, CK_RV rv);

typedef unsigned long U;
typedef CK_RV (*call)(U, U, U, U, U, U, U, U);

#define FUNCTIONS(X)                                                                                                  \
  X(C_Initialize, INIT) X(C_Finalize, INIT)                                                                           \
  X(C_GetInfo, INFO) X(C_GetSlotList, INFO) X(C_GetSlotInfo, INFO) X(C_GetTokenInfo, INFO)                            \
  X(C_OpenSession, SESSION) X(C_CloseSession, SESSION) X(C_GetSessionInfo, SESSION) X(C_Login, LOGIN)                 \
  X(C_FindObjectsInit, OBJECT) X(C_FindObjects, OBJECT) X(C_FindObjectsFinal, OBJECT) X(C_DestroyObject, OBJECT)      \
  X(C_GetAttributeValue, OBJECT) X(C_SetAttributeValue, OBJECT)                                                       \
  X(C_EncryptInit, CIPHER) X(C_Encrypt, CIPHER) X(C_DecryptInit, CIPHER) X(C_Decrypt, CIPHER)                         \
  X(C_SignInit, SIGN) X(C_Sign, SIGN)                                                                                 \
  X(C_GenerateKey, KEY) X(C_GenerateKeyPair, KEY) X(C_CreateObject, KEY) X(C_WrapKey, KEY)                             \
  X(C_DigestInit, DIGEST) X(C_DigestUpdate, DIGEST) X(C_DigestKey, DIGEST) X(C_DigestFinal, DIGEST)                   \
  X(C_GenerateRandom, RANDOM)

#define DEFINE(name, group)                                                                                           \
  static CK_RV f_##name(U a, U b, U c, U d, U e, U f, U g, U h) {                                                     \
    CK_RV rv = fault(group);                                                                                          \
    if (rv == CKR_OK) rv = ((call)(void *)real->name)(a, b, c, d, e, f, g, h);                                        \
    note((void *)f_##name, rv);                                                                                       \
    return rv;                                                                                                        \
  }
FUNCTIONS(DEFINE)

static CK_RV unwrap_carelessly(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE kek, CK_BYTE_PTR blob,
                               CK_ULONG length, CK_ATTRIBUTE_PTR template, CK_ULONG count, CK_OBJECT_HANDLE_PTR key) {
  static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
  CK_ATTRIBUTE changed[64];
  CK_RV rv = fault(KEY);
  if (rv != CKR_OK || count > 64) return rv != CKR_OK ? rv : CKR_ARGUMENTS_BAD;
  for (CK_ULONG i = 0; i < count; i++) {
    changed[i] = template[i];
    if (control->readable && template[i].type == CKA_SENSITIVE) changed[i].pValue = &no;
    if (control->extractable && template[i].type == CKA_EXTRACTABLE) changed[i].pValue = &yes;
  }
  return real->C_UnwrapKey(session, mechanism, kek, blob, length, changed, count, key);
}

static void note(void *function, CK_RV rv) {
  if (function == (void *)f_C_Login) control->logins++;
  if (rv != CKR_OK) return;
  if (function == (void *)f_C_GenerateKeyPair) control->pairs++;
  if (function == (void *)f_C_OpenSession) control->opened++;
  if (function == (void *)f_C_CloseSession) control->closed++;
}

#define INSTALL(name, group) list.name = (CK_##name)(void *)f_##name;

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR out) {
  if (real == NULL) {
    const char *module = getenv("P11FAULT_MODULE"), *file = getenv("P11FAULT_FILE");
    int descriptor = file ? open(file, O_RDWR) : -1;
    void *library = module ? dlopen(module, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (descriptor < 0 || library == NULL) return CKR_GENERAL_ERROR;
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList");
    if (control == MAP_FAILED || get == NULL || get(&real) != CKR_OK) return CKR_GENERAL_ERROR;
    list = *real;
    FUNCTIONS(INSTALL)
    list.C_UnwrapKey = unwrap_carelessly;
  }
  *out = &list;
  return CKR_OK;
}
