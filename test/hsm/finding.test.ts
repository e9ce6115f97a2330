import { expect, it } from 'vitest'
import { openHsm } from './support/open.ts'

it('objects are looked for in a thread, which does not hold up what is done inline', async () => {
  await using open = await openHsm({ executor: 'inline' })
  const { hsm } = open
  expect(hsm.busy).toBe(false)
  const finding = hsm.find({ class: 'secret', token: false })
  expect(hsm.busy).toBe(true)
  expect(await finding).toEqual([])
})
