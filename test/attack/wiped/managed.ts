import { fresh } from '../../api/node.ts'
import { makeAes, makeRsa } from '../../managed/tool.ts'
import { createToken, type TestToken } from '../../support/token.ts'
import { allOf, ciphers } from './uses.ts'
import { at, forEach, type Work } from './work.ts'

/** A token whose keys others have made; both servers of the test use it. */
export async function createManaged(): Promise<TestToken> {
  const token = await createToken('wiped')
  await makeRsa(token, 'rsa', '01')
  await makeAes(token, 'aes', '02')
  return token
}

/** Of these keys nothing can be known; their PIN stays, as docs/threat-model.md says. */
export const managedWorks = (token: () => TestToken): readonly Work[] =>
  forEach(
    [
      ['aes', '0x1087'],
      ['rsa', '0x9'],
    ] as const,
    ([key_label, mechanism]) => ({
      title: `what is encrypted by a managed key: ${key_label}`,
      through: [...at('sys', 'POST managed-keys/:type/:name'), ...ciphers],
      async run(calls) {
        const { label: token_label, pin } = token()
        const [managed_key_name, name] = [fresh('mk'), fresh('w')]
        const settings = { library: 'same', token_label, pin, key_label, mechanism, any_mount: true }
        await calls.post(`sys/managed-keys/pkcs11/${managed_key_name}`, settings)
        await calls.post(`transit/keys/${name}`, { type: 'managed_key', managed_key_name })
        return allOf(calls, name)
      },
    }),
  )
