import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { fresh, hello, useSharedNode } from '../../node.ts'
import { envelopeOf, wrappingKeyOf } from '../envelope.ts'

const node = useSharedNode()
const post = (path: string, body: Record<string, unknown> = {}) => node.root.post(`transit/${path}`, body)

/** More than a pool of the node has connections. */
const clients = 32
const times = 40

async function removed(name: string) {
  await post(`keys/${name}/config`, { deletion_allowed: true })
  return node.root.delete(`transit/keys/${name}`)
}

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' })
const type = 'ecdsa-p256'

test.each([
  ['an encryption that makes it', async (name: string) => [() => post(`encrypt/${name}`, { plaintext: hello })]],
  [
    'its making and certification',
    async (name: string) => [() => post(`keys/${name}`, { type }), () => post(`keys/${name}/csr`)],
  ],
  [
    'its import and that of a version',
    async (name: string) => {
      const ciphertext = envelopeOf(await wrappingKeyOf(node.root), pkcs8)
      return [
        () => post(`keys/${name}/import`, { type, ciphertext }),
        () => post(`keys/${name}/import_version`, { ciphertext }),
      ]
    },
  ],
])(
  'a key that is removed at any moment of %s is there or not, and no server fails',
  async (_, works) => {
    const name = fresh('r')
    const acts = [...(await works(name)), () => removed(name)]
    const answers: string[] = []
    const client = async (number: number): Promise<void> => {
      for (let n = 0; n < times; n++) {
        const { status, text } = await (acts[(number + n) % acts.length] ?? removed.bind(undefined, name))()
        answers.push(`${status} ${status < 500 ? '' : text}`.trim())
      }
    }
    await Promise.all(Array.from({ length: clients }, (__, number) => client(number)))
    expect(answers).toHaveLength(clients * times)
    expect([...new Set(answers)].filter((answer) => !/^(200|204|400)$/.test(answer))).toEqual([])
    expect(new Set(answers).size).toBeGreaterThan(1)
  },
  60_000,
)
