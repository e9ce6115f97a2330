/*
 * Makes a strict KEK: an AES-256 token object that can only wrap and unwrap, and whose CKA_UNWRAP_TEMPLATE has the token
 * itself refuse to unwrap anything as readable or extractable, as a key that derives or unwraps others, or as one that can be
 * changed. (WRAP is not in it: private keys have no such attribute, and SoftHSM then refuses them all. The server's own templates
 * say no to it.) pkcs11js cannot pass a nested template; this can.
 *
 *   strict-kek MODULE SERIAL LABEL ID MECHANISM [LIBRARY-PARAMETERS]
 *
 * ID is hexadecimal, MECHANISM the number under which the token does RFC 5649. Standard input: the PIN on one line, then
 * an empty line (the key is born in the token) or 64 hexadecimal digits (its value, from the custodians' components).
 * That the token enforces the template is tried out; if it does not, the key is destroyed.
 *
 * Exit status: 0 made; 2 usage; 3 wrong PIN; 4 PIN locked, or the next wrong one would lock it (nothing tried); 5 no such
 * token; 6 the token does not enforce the template; 7 the token refused a call, named on standard error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pkcs11.h"

#ifndef CKA_COPYABLE
#define CKA_COPYABLE 0x171
#endif
#ifndef CKA_UNWRAP_TEMPLATE
#define CKA_UNWRAP_TEMPLATE (CKF_ARRAY_ATTRIBUTE | 0x212)
#endif
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ATTRIBUTE(type, value) {type, &value, sizeof(value)}

/* NSS reads library parameters from a field between the flags and the reserved pointer. */
struct initialise {
  void *mutexes[4];
  CK_FLAGS flags;
  const char *parameters;
  void *reserved;
};

static CK_FUNCTION_LIST *p11;
static CK_SESSION_HANDLE session;
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static CK_OBJECT_CLASS secret = CKO_SECRET_KEY;
static CK_KEY_TYPE aes = CKK_AES;
static CK_ULONG length = 32;

static void require(CK_RV rv, const char *call) {
  if (rv == CKR_OK) return;
  fprintf(stderr, "%s: CKR 0x%lx\n", call, rv);
  exit(rv == CKR_PIN_LOCKED ? 4 : rv == CKR_PIN_INCORRECT || rv == CKR_PIN_LEN_RANGE || rv == CKR_PIN_INVALID ? 3 : 7);
}

/* Reads bytes as hexadecimal digits; returns how many, or 0 when the text is anything else or too long. */
static size_t read_hex(const char *text, unsigned char *bytes, size_t most) {
  size_t digits = strlen(text);
  if (digits % 2 != 0 || digits / 2 > most || strspn(text, "0123456789abcdefABCDEF") != digits) return 0;
  for (size_t i = 0; i < digits / 2; i++) sscanf(text + 2 * i, "%2hhx", &bytes[i]);
  return digits / 2;
}

static char *read_line(char *line, int size) {
  if (fgets(line, size, stdin) == NULL) line[0] = 0;
  line[strcspn(line, "\r\n")] = 0;
  return line;
}

static void log_in(const char *serial) {
  CK_SLOT_ID slots[256];
  CK_ULONG count = COUNT(slots);
  CK_TOKEN_INFO info;
  char padded[17], pin[512];
  snprintf(padded, sizeof padded, "%-16s", serial);
  require(p11->C_GetSlotList(CK_TRUE, slots, &count), "C_GetSlotList");
  CK_ULONG i = 0;
  while (i < count && (p11->C_GetTokenInfo(slots[i], &info) != CKR_OK || memcmp(info.serialNumber, padded, 16) != 0 ||
                       !(info.flags & CKF_USER_PIN_INITIALIZED)))
    i++;
  if (i == count) exit(5);
  if (info.flags & (CKF_USER_PIN_FINAL_TRY | CKF_USER_PIN_LOCKED)) exit(4);
  require(p11->C_OpenSession(slots[i], CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), "C_OpenSession");
  read_line(pin, sizeof pin);
  CK_RV rv = p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR)pin, strlen(pin));
  explicit_bzero(pin, sizeof pin);
  require(rv, "C_Login");
}

static CK_OBJECT_HANDLE make_kek(char *label, unsigned char *id, size_t id_length) {
  char text[80];
  unsigned char value[32];
  size_t given = read_hex(read_line(text, sizeof text), value, sizeof value);
  if (text[0] != 0 && given != sizeof value) exit(2);
  CK_ATTRIBUTE unwrapped[] = {
      ATTRIBUTE(CKA_SENSITIVE, yes), ATTRIBUTE(CKA_EXTRACTABLE, no), ATTRIBUTE(CKA_DERIVE, no),
      ATTRIBUTE(CKA_UNWRAP, no),     ATTRIBUTE(CKA_MODIFIABLE, no),
  };
  CK_ATTRIBUTE template[] = {
      ATTRIBUTE(CKA_CLASS, secret),     ATTRIBUTE(CKA_KEY_TYPE, aes),    ATTRIBUTE(CKA_TOKEN, yes),
      ATTRIBUTE(CKA_PRIVATE, yes),      ATTRIBUTE(CKA_SENSITIVE, yes),   ATTRIBUTE(CKA_EXTRACTABLE, no),
      ATTRIBUTE(CKA_MODIFIABLE, no),    ATTRIBUTE(CKA_COPYABLE, no),     ATTRIBUTE(CKA_ENCRYPT, no),
      ATTRIBUTE(CKA_DECRYPT, no),       ATTRIBUTE(CKA_SIGN, no),         ATTRIBUTE(CKA_VERIFY, no),
      ATTRIBUTE(CKA_DERIVE, no),        ATTRIBUTE(CKA_WRAP, yes),        ATTRIBUTE(CKA_UNWRAP, yes),
      {CKA_LABEL, label, strlen(label)}, {CKA_ID, id, id_length},        {CKA_UNWRAP_TEMPLATE, unwrapped, sizeof unwrapped},
      ATTRIBUTE(CKA_VALUE_LEN, length),
  };
  CK_ATTRIBUTE *last = &template[COUNT(template) - 1];
  CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
  CK_OBJECT_HANDLE kek;
  if (given) {
    *last = (CK_ATTRIBUTE){CKA_VALUE, value, sizeof value};
    CK_RV rv = p11->C_CreateObject(session, template, COUNT(template), &kek);
    explicit_bzero(value, sizeof value);
    explicit_bzero(text, sizeof text);
    require(rv, "C_CreateObject");
  } else {
    require(p11->C_GenerateKey(session, &generate, template, COUNT(template), &kek), "C_GenerateKey");
  }
  return kek;
}

/* Unwraps a blob with all the guards but `dropped`, an attribute's type. */
static CK_RV unwrap(CK_OBJECT_HANDLE kek, CK_MECHANISM *how, CK_BYTE *blob, CK_ULONG size, CK_ATTRIBUTE_TYPE dropped) {
  /* MODIFIABLE is last: SoftHSM refuses what comes after it. */
  CK_ATTRIBUTE template[] = {
      ATTRIBUTE(CKA_CLASS, secret), ATTRIBUTE(CKA_KEY_TYPE, aes),   ATTRIBUTE(CKA_TOKEN, no),   ATTRIBUTE(CKA_SENSITIVE, yes),
      ATTRIBUTE(CKA_EXTRACTABLE, no), ATTRIBUTE(CKA_DERIVE, no), ATTRIBUTE(CKA_UNWRAP, no), ATTRIBUTE(CKA_MODIFIABLE, no),
  };
  for (CK_ULONG i = 0; i < COUNT(template); i++)
    if (template[i].type == dropped) template[i].pValue = dropped == CKA_SENSITIVE ? &no : &yes;
  CK_OBJECT_HANDLE key;
  return p11->C_UnwrapKey(session, how, kek, blob, size, template, COUNT(template), &key);
}

/* Whether the token unwraps with every guard, and refuses to without any one of them. */
static int enforced(CK_OBJECT_HANDLE kek, CK_MECHANISM_TYPE mechanism) {
  CK_ATTRIBUTE template[] = {
      ATTRIBUTE(CKA_CLASS, secret), ATTRIBUTE(CKA_KEY_TYPE, aes),    ATTRIBUTE(CKA_TOKEN, no),
      ATTRIBUTE(CKA_SENSITIVE, yes), ATTRIBUTE(CKA_EXTRACTABLE, yes), ATTRIBUTE(CKA_VALUE_LEN, length),
  };
  CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, how = {mechanism, NULL, 0};
  CK_OBJECT_HANDLE key;
  CK_BYTE blob[64];
  CK_ULONG size = sizeof blob;
  if (p11->C_GenerateKey(session, &generate, template, COUNT(template), &key) != CKR_OK) return 0;
  if (p11->C_WrapKey(session, &how, kek, key, blob, &size) != CKR_OK) return 0;
  CK_ATTRIBUTE_TYPE guards[] = {CKA_SENSITIVE, CKA_EXTRACTABLE, CKA_DERIVE, CKA_UNWRAP, CKA_MODIFIABLE};
  for (CK_ULONG i = 0; i < COUNT(guards); i++)
    if (unwrap(kek, &how, blob, size, guards[i]) == CKR_OK) return 0;
  return unwrap(kek, &how, blob, size, CK_UNAVAILABLE_INFORMATION) == CKR_OK;
}

int main(int argc, char **argv) {
  unsigned char id[64];
  size_t id_length = argc >= 6 ? read_hex(argv[4], id, sizeof id) : 0;
  if (id_length == 0 || argc > 7) return 2;
  mlockall(MCL_CURRENT | MCL_FUTURE); /* best effort: neither PIN nor value in swap */
  setvbuf(stdin, NULL, _IONBF, 0);    /* nor in a buffer that is not ours to wipe */
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CK_C_GetFunctionList get = library ? (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList") : NULL;
  if (get == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 7;
  }
  require(get(&p11), "C_GetFunctionList");
  struct initialise with_parameters = {.flags = CKF_OS_LOCKING_OK, .parameters = argc == 7 ? argv[6] : NULL};
  CK_C_INITIALIZE_ARGS plain = {.flags = CKF_OS_LOCKING_OK};
  require(p11->C_Initialize(argc == 7 ? (void *)&with_parameters : (void *)&plain), "C_Initialize");
  log_in(argv[2]);
  CK_OBJECT_HANDLE kek = make_kek(argv[3], id, id_length);
  int ok = enforced(kek, strtoul(argv[5], NULL, 0));
  if (!ok) require(p11->C_DestroyObject(session, kek), "C_DestroyObject");
  p11->C_Finalize(NULL);
  return ok ? 0 : 6;
}
