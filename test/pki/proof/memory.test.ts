import { createPrivateKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { asn1, expect as element, readAll, readNumber, readOne } from '../../../src/crypto/der.ts'
import { traditionalForm } from '../../../src/crypto/privatekey.ts'
import { done, useNode } from '../../api/node.ts'
import { serving } from '../../attack/nodes.ts'
import { Remembered } from '../../support/memory.ts'
import { type Answer, createAuthority, dataOf } from '../api/authority.ts'

/**
 * The numbers of private keys in the memory of the worker that handed them out, where nothing overwrites freed memory:
 * test/attack/wiping.test.ts has the other keys. The PEM text in the answer stays a while.
 */

const node = useNode()
const worker = (): number => serving(node.server)[0] ?? 0

/** The secret numbers of a private key of an answer. */
function secretsOf(pem: unknown): readonly Buffer[] {
  const pkcs8 = createPrivateKey(String(pem)).export({ format: 'der', type: 'pkcs8' })
  const { label, der } = traditionalForm(pkcs8)
  if (label === 'EC PRIVATE KEY') return [element(readAll(readOne(der, asn1.sequence))[1], asn1.octetString)]
  if (label === 'RSA PRIVATE KEY') return readAll(readOne(der, asn1.sequence)).slice(3).map(readNumber)
  return [pkcs8.subarray(-32)]
}

function remember(answers: readonly Answer[]): Remembered {
  const remembered = new Remembered()
  for (const [round, { private_key: pem }] of answers.entries()) {
    for (const [index, secret] of secretsOf(pem).entries()) remembered.add(`key ${round}, number ${index}`, secret)
  }
  return remembered
}

test('the search finds bytes that a worker holds', async () => {
  const remembered = new Remembered()
  const text = randomBytes(24).toString('hex')
  const pki = await createAuthority(node)
  await pki.role('r', { ou: text })
  await pki.get('roles/r')
  remembered.add('text', Buffer.from(text))
  expect(remembered.found(worker())).toEqual(['text'])
})

test.each(['ec', 'ed25519'])(
  'of leaf keys of type %s nothing is left',
  async (type) => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r', { key_type: type })
    const answers: Answer[] = []
    for (let round = 0; round < 4; round++) {
      answers.push(
        dataOf(await done(pki.post('issue/r', { common_name: 'a.example', format: round % 2 ? 'pem_bundle' : 'pem' }))),
      )
    }
    expect(remember(answers).found(worker())).toEqual([])
  },
  60_000,
)
