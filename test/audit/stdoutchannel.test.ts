import { expect, test } from 'vitest'
import { StdoutChannel } from '../../src/audit/stdout.ts'
import { systemClock } from '../../src/clock.ts'

/** Standard output as a device sees it, without a server: only its supervisor knows whether lines are written. */

const lines = Buffer.from('{"é":1}\n')

test('a command’s standard output neither opens nor takes lines', async () => {
  const channel = new StdoutChannel(undefined, systemClock)
  await expect(channel.open()).rejects.toThrow('the audit device stdout is that of the server, not of a command')
  await expect(channel.send(lines)).rejects.toThrow('standard output takes no more lines')
})

test('lines that were not printed are an error, and there is a pause before it is tried again', async () => {
  const hands = { now: 5000, printed: true }
  const texts: string[] = []
  const channel = new StdoutChannel(
    async (text) => {
      texts.push(text)
      return hands.printed
    },
    { ...systemClock, monotonic: () => hands.now },
  )
  await channel.open()
  await channel.send(lines)
  hands.printed = false
  await expect(channel.send(lines)).rejects.toThrow('standard output takes no more lines')
  hands.now += 99
  await expect(channel.open()).rejects.toThrow('standard output takes no more lines')
  hands.now += 1
  await channel.open()
  // The pause is the first again once lines were printed.
  hands.printed = true
  await channel.send(lines)
  hands.printed = false
  await expect(channel.send(lines)).rejects.toThrow('standard output takes no more lines')
  hands.now += 100
  await channel.open()
  expect(texts).toEqual(Array(4).fill('{"é":1}\n'))
})
