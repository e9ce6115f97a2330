import { expect, test } from 'vitest'
import { bodies } from '../../../scripts/storm/bodies.ts'
import { useTarget } from './attacked.ts'

const target = useTarget()

/** The answers to each body. */
const answers: Readonly<Record<string, readonly string[]>> = {
  '990,000 members and a lone surrogate': ['413'],
  '990,000 members and a lone surrogate, signed in': ['400'],
  '22.8 MB of strings, refused': ['413'],
  '22.8 MB of strings, signed in': ['400'],
  '400 kB of short strings, refused': ['413'],
  '400 kB of short strings, signed in': ['400'],
  '60 kB of short strings, refused': ['403'],
  '12 kB of short strings, signed in': ['400'],
  'a batch of 200,000 items, signed in': ['400'],
  'a batch of 100,000 items, signed in': ['200'],
  'a batch of 20,000 lone surrogates, signed in': ['200'],
  'a batch of 20,000 numbers of 1,000 digits, signed in': ['200'],
  'a plaintext of 30 MB, signed in': ['200'],
  'a number of 10 million digits, signed in': ['200'],
  'a backup of a million members, signed in': ['400'],
  '45 unfinished bodies of 31 MB': ['413'],
}

test.each(bodies.filter(({ title }) => title in answers))(
  '$title: nobody else waits, and it is refused or answered',
  async (attack) => {
    const { sent } = await target.withstand(attack)
    expect([...sent.answers.keys()]).toEqual(answers[attack.title])
  },
  120_000,
)

test('of 45 unfinished bodies of 31 MB by a caller no more are held than there is room for', async () => {
  const attack = bodies.find(({ title }) => title === '45 unfinished bodies of 31 MB, signed in')
  if (attack === undefined) throw new Error('no such attack')
  const { sent } = await target.withstand(attack)
  expect(sent.answers.get('503')).toBeGreaterThan(0)
}, 120_000)
