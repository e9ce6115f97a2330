import { expect, test } from 'vitest'
import { authority } from '../../../scripts/storm/authority.ts'
import { useTarget } from './attacked.ts'

const target = useTarget()

/** `npm run storm` asks 20,000, and a million with `-- --questions 1000000`. */
const questions = 3000
const attacks = authority(questions)
const [asking, ...crafted] = attacks.toReversed()

test.each(crafted)(
  '$title: nobody else waits',
  async (attack) => {
    const { sent } = await target.withstand(attack)
    const expected = attack.title.includes('entries') ? '200' : '400'
    expect([...sent.answers.keys()]).toEqual([expected])
  },
  120_000,
)

test('strangers who ask about serial numbers that nobody issued hold up nobody, and all are answered', async () => {
  if (asking === undefined) throw new Error('no such attack')
  const { sent } = await target.withstand(asking)
  expect(sent.requests).toBe(questions)
  expect(sent.answers.get('closed')).toBe(undefined)
}, 120_000)
